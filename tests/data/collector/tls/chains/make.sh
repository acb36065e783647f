#!/bin/sh
# Makes the certificates of this folder anew, with OpenSSL 3; see README.md. The keys of the authorities are thrown away.
set -eu
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
: > index
cat > settings <<'END'
[ca]
default_ca = here
[here]
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = names
unique_subject = no
[names]
commonName = supplied
END
cp "$here/../own-key.pem" server.key

# sign NAME ISSUER EXTENSIONS [FROM UNTIL]: NAME.pem, whose subject is `CN=NAME`; its key is NAME.key, or a new one.
sign() {
    [ -f "$1.key" ] || openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"
    openssl req -new -key "$1.key" -subj "/CN=$1" -out request
    issuer=$2
    [ -f "$issuer.pem" ] && signer="-cert $issuer.pem" || signer=-selfsign
    : > extensions
    [ -z "$3" ] || printf '%b' "$3" > extensions
    openssl ca -batch -notext -config settings $signer -keyfile "$issuer.key" -in request -extfile extensions \
        -startdate "${4:-20200101000000Z}" -enddate "${5:-21200101000000Z}" -out "$1.new" 2> log || { cat log; exit 1; }
    mv "$1.new" "$1.pem"
}

# pair NAME ISSUER [BETWEEN]: NAME.pem, which the server shows, and NAME-ca.pem, which is trusted.
pair() {
    rm -f server.pem
    sign server "${3:-$2}" "$names"
    cat server.pem ${3:+"$3.pem"} > "$here/$1.pem"
    cp "$2.pem" "$here/$1-ca.pem"
}

# root NAME EXTENSIONS [FROM UNTIL]: an authority NAME that signed itself, and a pair of the same name.
root() {
    sign "$1" "$1" "$2" "${3:-}" "${4:-}"
    pair "$1" "$1"
}

names='subjectAltName = IP:127.0.0.1, DNS:sink.test\n'
authority='basicConstraints = critical, CA:TRUE\n'
signs='keyUsage = critical, keyCertSign, cRLSign\n'

# Right ones.
root good "$authority$signs"
root no-key-usage "$authority"
root any-purpose "$authority${signs}extendedKeyUsage = anyExtendedKeyUsage\n"
root for-servers "$authority${signs}extendedKeyUsage = clientAuth, serverAuth\n"
root policies "$authority${signs}certificatePolicies = critical, 1.2.3.4\npolicyConstraints = critical, requireExplicitPolicy:0\n"
sign old-version old-version ''
pair old-version old-version
sign between good "$authority$signs"
pair between good between
root depth-0 'basicConstraints = critical, CA:TRUE, pathlen:0\n'"$signs"
root depth-1 'basicConstraints = critical, CA:TRUE, pathlen:1\n'"$signs"
sign between-1 depth-1 "$authority$signs"
pair depth-1-between depth-1 between-1

# Authorities that are none, or not for this.
root says-no 'basicConstraints = critical, CA:FALSE\n'
root says-nothing 'subjectAltName = DNS:other.test\n'
root may-not-sign "${authority}keyUsage = critical, digitalSignature\n"
root for-clients "$authority${signs}extendedKeyUsage = clientAuth\n"
root for-others "$authority${signs}extendedKeyUsage = 1.2.3.4\n"
root critical "$authority${signs}1.2.3.4 = critical, ASN1:NULL\n"
root expired "$authority$signs" 20200101000000Z 20210101000000Z
root future "$authority$signs" 20900101000000Z 21200101000000Z
sign between-0 depth-0 "$authority$signs"
pair depth-0-between depth-0 between-0
sign expired-between good "$authority$signs" 20200101000000Z 20210101000000Z
pair expired-between expired-between
sign between-may-not-sign good "${authority}keyUsage = critical, digitalSignature\n"
pair between-may-not-sign good between-may-not-sign
# The same name and key as the expired one, renewed.
sign expired expired "$authority$signs"
cp expired.pem "$here/renewed-ca.pem"
# It may sign for every name but ours.
root for-other-names "$authority${signs}nameConstraints = critical, permitted;DNS:other.test, permitted;IP:10.0.0.0/255.0.0.0\n"

# Their own authorities.
own() {
    sign server server "$names$authority$2"
    mv server.pem "$here/$1.pem"
}
rm -f server.pem
own own-for-clients 'extendedKeyUsage = clientAuth\n'
own own-any-purpose 'extendedKeyUsage = anyExtendedKeyUsage\n'
own own-critical '1.2.3.4 = critical, ASN1:NULL\n'

# Two authorities, of whom the first is damaged.
{
    printf -- '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    cat good.pem
} > "$here/damaged-ca.pem"

# Names of other kinds.
names='subjectAltName = email:a@b.test, URI:http://b.test, dirName:there\n[there]\nCN = x\n'
pair names-of-others good
names='subjectAltName = DNS:127.0.0.1\n'
pair names-as-text good
names='subjectAltName = DNS:*.test\n'
pair names-of-a-zone good
names='subjectAltName = IP:127.0.0.1, DNS:sink.test\n'

# Keys that are too small.
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out small.key 2> log
root small "$authority$signs"
cp small.key server.key
pair small-server good
cp server.key "$here/small-server-key.pem"
