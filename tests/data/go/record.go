// Records what Go does with patterns, formats and numbers; see README.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var texts = []string{
	"", "a", "abab aab", "aAbBkK\u212a sS\u017f", "\u00c9\u00e9 a_b-1\u0663 \n\t\v[x]y\n", "\u03b1\u03a9 ab1\nba2 \u4e2d",
	"^$.*+?(){2}[]|\\&&--~~#<>:,=a{,3}\x00\x01\x7f",
}

type pattern struct {
	Pattern  string   `json:"pattern"`
	Template string   `json:"template,omitempty"`
	Error    string   `json:"error,omitempty"`
	Matches  [][]int  `json:"matches,omitempty"`
	Replaced []string `json:"replaced,omitempty"`
}

func record(text, template string) pattern {
	recorded := pattern{Pattern: text, Template: template}
	compiled, err := regexp.Compile(text)
	if err != nil {
		recorded.Error = strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return recorded
	}
	for _, text := range texts {
		flat := []int{}
		for _, match := range compiled.FindAllStringSubmatchIndex(text, -1) {
			flat = append(flat, match...)
		}
		recorded.Matches = append(recorded.Matches, flat)
		recorded.Replaced = append(recorded.Replaced, compiled.ReplaceAllString(text, template))
	}
	return recorded
}

var curated = strings.Split(`a|b
(a)(b)?
a||b
()
(|a)*
(|a)+
(a|)+
(a*)*
(a*)+
(a+)*b
a*?
a+?b
a??b
(?U)a*
(?U)a*?b
(?U:a+)a
(?i)k
(?i)K
(?i)s+
(?i)[k]
(?i)[^k]
(?i)\w+
(?i)\W
(?i)[\W]
(?i)[[:word:]]
(?i)[[:^word:]]
(?i)[^[:upper:]]
(?i)\p{Lu}
(?i)\P{Lu}
(?i)[^\p{Lu}]
(?i)É
a(?i)b
a(?i)b|k
(a(?i)b)b
(?i:a)b
(?i-s:a.)b
(?-i)a
(?i-i)A
(?ii)A
(?)a
(?-)a
(?i-)a
(?--i)a
(?i
(?
(?:
(?i:
(?:a
(?:)
(?:a)*
(?x)a
(?u)a
(?R)a
(?P<n>a)
(?<n>a)
(?P<n>a)(?P<n>b)
(?P<1>a)
(?P<01>a)(?<x_1>b)
(?P<>a)
(?P<n-m>a)
(?P<é>a)
(?P<n
(?P<n>
(?P=n)
(?'n'a)
(?=a)
(?!a)
(?<=a)
(?<!a)
(?>a)
(?#a)
(?P<
(?<
(?<a
(?P
a*+
a**
a+*
a?*
a*?*
a*??
a{2}{3}
a{2}*
a{2}?
a{2}??
(a{2}){3}
(?:a*)*
(?:a*)+?
*
+a
|*
(*)
(?:*)
(?i)*
a(?i)*
a*(?i)*
a*(?i)?
a(?U)+
a+(?U)?b
^*
^+a
$*
\b*
\b+a
a{
a{2
a{2,
a{,3}
a{,}
a{}
a{ 2}
a{2, 3}
a{02}
a{2,03}
a{1001}
a{1000}
a{2,1001}
a{1001,}
a{3,2}
a{99999999999}
a{0,99999999999}
a{0}
a{0}b
(a){0}b
a{0,}
a{1,}
a{0,0}
a{1,1}
(?:a{500}){2}
(?:a{500}){3}
(?:a{1000}){0}
(?:a{100}){10,}
(?:a{100}){11,}
((a{10}){10}){10}
((a{10}){10}){11}
(?:a{1000})*
(?:(?:a{40}){0,})b{30}
(?:(?:a{40}){0,}){30}
{
{2}
a|{2}
}
a}
]
a]
)
a)
(
(a
((a)
[
[a
[]
[]a]
[^]a]
[^]
[a-]
[-a]
[a-c-e]
[--a]
[+--]
[a--]
[a-c--z]
[z-a]
[\d-z]
[a-\d]
[\d-]
[\w-\x{e9}]
[\n-\t]
[\t-\n]
[[a]
[[]
[[a]]
[a[b]c]
[[:alpha:]]
[[:^alpha:]]
[^[:alpha:]]
[[:alpha:][:digit:]_]
[:alpha:]
[[:foo:]]
[[:^:]]
[[::]]
[[:alpha]
[[:a]
[[:alpha:-z]
[a&&b]
[a--b]
[a~~b]
[&&]
[#-&]
[ -~]
[^ -~]
[\b]
[\B]
[\A]
[\Q]
[\]]
[\]\-a]
[\\]
[\x41-\x43]
[\x{3b1}-\x{3c9}]
[\101-\103]
[\pL]
[\PL]
[^\pL]
[\p{Greek}\d]
[^\p{Greek}\d]
[^\D]
[^\d\D]
[^\x{0}-\x{10FFFF}]
[\x{D800}]
[\x{D800}-\x{DFFF}]
[^\x{D800}-\x{DFFF}]
[\x{D7FF}-\x{E000}]
[\x{D800}-\x{FFFF}]
[ÿ-é]
[é-ÿ]
[\_]
[\é]
[\8]
\
a\
\a\f\t\n\r\v
[\v\t]
\_
\-
\<
\>
\#
\&
\~
\ 
\/
\"
\%
\@
\é
\z
\Z
\A
\G
\K
\X
\C
\R
\h
\N
\u0041
\U00000041
\x
\x4
\x41
\x4g
\xg
\x{
\x{}
\x{41
\x{41}
\x{00000000041}
\x{110000}
\x{10FFFF}
\x{D800}
\x{4g}
\x{é}
\xé
\0
\00
\000
\0001
\1
\12
\101
\18
\8
\9
\377
\777
(a)\1
\d+
\D+
\w+
\W+
\s+
\S+
\bab\b
\Bb
\b
\B
\pL+
\PL+
\pN
\p{N}
\p{Nd}
\p{^Nd}
\P{^Nd}
\P{Nd}
\pLu
\p{Lu}
\p{lu}
\p{LC}
\p{Letter}
\p{Uppercase_Letter}
\p{uppercase letter}
\p{Greek}
\p{greek}
\p{GREEK}
\p{Han}
\p{^Greek}
\p{Any}
\p{ASCII}
\p{ascii}
\p{^ASCII}
\p{Assigned}
\p{Cn}
\p{Co}
\p{Cs}
\p{Grek}
\p{IsGreek}
\p{Alphabetic}
\p{Alpha}
\p{White_Space}
\p{Emoji}
\p{sc=Greek}
\p{gc=L}
\p{Script=Greek}
\p{L}
\p
\pé
\p{
\p{}
\p{^}
\p{L
\p{é}
\p^L
\p^
\P^L
\pX
\p{Foo}
\Qa.b\E
\Q&&--\E+
\Q.\E*
\Q\E
\Q\E*
a\Q\E*
\Q
\Q\
\Qa
\Qa\Eb
\E
a\E
\Qab\E+
\Q(\E
\Qé\E
.
.+
(?s).+
(?s:.+)
(?-s).+
(?m)^a
(?m)a$
(?m)^$
(?m)\Aa
(?m)b\z
^a
a$
^$
^ab$|1$
(?s)^.*$
(?m)^.*$
(?:^|b)a
a^
$a
^^a
a b
a#b
(?i)α
(?i)Ω
(?i)[α-ω]
\x{3b1}
中
[中]
(?P<a>a)(?P<b>b)|(?P<c>1)
(?:(?:(?:a)))
(a|b)*
(a|ab)(c|bcd)?
(?:a|b)?b
x?y?z?
[0-9]+(?:\.[0-9]+)?
^([^:]+):(.+)$
(?i)^(?:AB|ba)`, "\n")

var templates = strings.Split(`<$0>|$1-${1}-$2|[$n]${n}|${1}x$1x|$01$x_1|$$|$|${|${1|$a$b$c|${a b}|$é|$(1)|$99|${01}|$1$1|$9999999999|${}|$-|-`, "|")

var tokens = strings.Split("a b ab K s é α 1 - ^ $ . * + ? *? {2} {,3} {1,} {3,2} {0} {0,2} | ( ) ( ) (a) (b|a) (?: (?i) (?i: (?s) (?U) (?m) (?-i: (?P<n> (?<m> "+
	"[ ] [ ] [^ [a-k] [^b] \\d \\D \\w \\W \\s \\b \\B \\A \\z \\pL \\PN \\p{Greek} \\p{^Lu} \\Q \\E \\x41 \\x{e9} \\101 \\0 \\_ \\< \\- \\] \\\\ [[:alpha:]] [^[:digit:]] && -- ~~ #", " ")

type formatted struct {
	Format    string   `json:"format"`
	Arguments []string `json:"arguments,omitempty"`
	Printed   string   `json:"printed"`
}

// A letter for the type, then the value: as the fuzz target `formats` has it.
func argument(text string) any {
	if text == "" {
		return nil
	}
	rest := text[1:]
	switch text[0] {
	case 'i':
		value, _ := strconv.ParseInt(rest, 10, 64)
		return value
	case 'd':
		value, _ := strconv.ParseFloat(rest, 64)
		return value
	case 'b':
		return rest == "true"
	case 'x':
		return []byte(rest)
	case 's':
		return rest
	case 't':
		value, _ := time.ParseDuration(rest)
		return value
	case 'l':
		list := []any{}
		for _, element := range strings.Split(rest, ",") {
			list = append(list, argument(element))
		}
		return list
	}
	return nil
}

var arguments = strings.Split("|i0|i7|i-42|i255|i65|i233|i9223372036854775807|i-9223372036854775808|i1114112|d0|d-0|d1.5|d-2.5|d1e6|d1e20|d1e21|d123456789|d1e-5|d0.0001|d3.14159265|d5e-324|d1.7976931348623157e308|dNaN|dInf|d-Inf|"+
	"btrue|bfalse|s|sab|sé\u00ffz|s\"q\\\n\x01\x7f|s\u202e\u4e2d|xab|x|xé|li1,sa,,d1.5|ls|l|lbtrue,xab", "|")

func formats(random *rand.Rand, count int) []formatted {
	verbs := "vdsqxXtTbcoOUeEfFgG%z!w"
	pick := func(from string) string { return string(from[random.Intn(len(from))]) }
	all := []formatted{}
	add := func(format string, given []string) {
		values := []any{}
		for _, text := range given {
			values = append(values, argument(text))
		}
		all = append(all, formatted{format, given, fmt.Sprintf(format, values...)})
	}
	for _, verb := range verbs {
		for _, given := range arguments {
			add("%"+string(verb), []string{given})
		}
	}
	for range count {
		format := ""
		given := []string{}
		for range 1 + random.Intn(3) {
			format += "%"
			for random.Intn(3) == 0 {
				format += pick("+-# 0")
			}
			if random.Intn(8) == 0 {
				format += pick("[]") + pick("123x") + "]"
			}
			if random.Intn(3) == 0 {
				format += strconv.Itoa(random.Intn(12))
			} else if random.Intn(8) == 0 {
				format += "*"
			}
			if random.Intn(3) == 0 {
				format += "." + []string{"", "0", "1", "3", "10", "*", "-1"}[random.Intn(7)]
			}
			format += pick(verbs) + pick("| a%")
		}
		for range random.Intn(4) {
			given = append(given, arguments[random.Intn(len(arguments))])
		}
		add(strings.TrimSuffix(format, "%"), given)
	}
	return all
}

type number struct {
	Text    string `json:"text"`
	Double  string `json:"double,omitempty"`
	Integer string `json:"integer,omitempty"`
}

func numbers(random *rand.Rand, count int) []number {
	all := []number{}
	add := func(text string) {
		recorded := number{Text: text}
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			recorded.Double = strconv.FormatUint(math.Float64bits(value), 16)
			if math.IsNaN(value) {
				recorded.Double = "NaN"
			}
		}
		if value, err := strconv.ParseInt(text, 10, 64); err == nil {
			recorded.Integer = strconv.FormatInt(value, 10)
		}
		all = append(all, recorded)
	}
	for _, text := range strings.Split("|0|-0|+0|1|+1|--1|1.|.1|.|-.|1e|1e5|1E5|1e+5|1e-|e5|1_0|1__0|_1|1_|0x|0x1|0x1p|0x1p0|0X1P-2|0x.8p1|0x1.p1|0x.p1|0x_1p4|0x1_p4|0x1p1_0|0x1p+1|0x1.8|0x1e5|"+
		"inf|Inf|INF|+inf|-Infinity|infinit|infinityx|nan|NaN|+nan|-NaN|nanx|1e400|-1e400|1e-400|0x1p2000|0x1p-2000|0x1p-1074|0x1p-1075|0x1.8p-1074|0x1fffffffffffff8p0|0x1fffffffffffff7p0|0x10000000000000081p0|0x20000000000001p0|0x20000000000003p0|"+
		"9223372036854775807|9223372036854775808|-9223372036854775808|-9223372036854775809|00012|1 | 1|1\n|١|1.7976931348623157e308|1.7976931348623159e308|4.9e-324|2.4e-324|0b1|0o7|1d|1f|0x1p99999999999|0x1p-99999999999|1e99999999999|0e99999999999|0x0p99999999999", "|") {
		add(text)
	}
	for range count {
		text := ""
		for range 1 + random.Intn(8) {
			text += string("0123456789..eEpPxX__+-ainf"[random.Intn(26)])
		}
		add([]string{"", "", "0x", "-"}[random.Intn(4)] + text)
	}
	return all
}

func write[T any](name string, all []T) {
	file, err := os.Create(name)
	if err != nil {
		panic(err)
	}
	writer := bufio.NewWriter(file)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for _, one := range all {
		if err := encoder.Encode(one); err != nil {
			panic(err)
		}
	}
	writer.Flush()
	file.Close()
}

// Arguments: how many random patterns, formats and numbers to record besides the chosen ones; a seed.
func main() {
	count := func(place int) int {
		value, err := strconv.Atoi(os.Args[place])
		if err != nil {
			panic(err)
		}
		return value
	}
	random := rand.New(rand.NewSource(int64(count(4))))
	patterns := []pattern{}
	for place, text := range curated {
		patterns = append(patterns, record(text, templates[place%len(templates)]))
	}
	for range count(1) {
		text := ""
		for range 1 + random.Intn(7) {
			text += tokens[random.Intn(len(tokens))]
		}
		patterns = append(patterns, record(text, templates[random.Intn(len(templates))]))
	}
	write("patterns.jsonl", patterns)
	write("formats.jsonl", formats(random, count(2)))
	write("numbers.jsonl", numbers(random, count(3)))
}
