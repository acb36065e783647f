"""Makes the nemo-lens 0.1.0 of PyPI good enough for the NeMo Gym that asks for a newer one.

NeMo Gym 0.7.0 wants `NV_DL_RANK`, `NV_DL_WORLD_SIZE` and `SpanRegistry` of nemo-lens. The only release on PyPI lacks them; NeMo Gym takes the
ImportError for "not installed" and goes on without telemetry, and says so at debug level only. This module adds just what is missing.

It is put in front of PYTHONPATH for Gym servers, so Python runs it at every start. It decides inside the process whether it is needed:

- telemetry is not asked for: nothing is done;
- `nemo_gym` is never imported: nothing is done, nothing is said;
- when `nemo_gym` is imported, it looks whether its telemetry can work at all;
- when `nemo.lens` is imported, it looks for the names and adds those that are missing;
- when `uvicorn` is imported, requests get a context of their own by default: otherwise one that comes in on a kept-alive
  connection before the one before it is finished becomes a child of that one, in the wrong trace.

Nothing is imported earlier than it would be without this module. A `sitecustomize` that this file hides is run as well, and takes its place.

At most one line is written, to standard error, for gymrun to turn into a warning:

    gymrun: lens-compat: <state> <details>

with one of these states, and details for people to read:

- `patched`: names were added; telemetry works.
- `no-telemetry`: telemetry was asked for and cannot work; the details say what is missing.
"""

import os
import sys
from importlib.machinery import PathFinder

_WATCHED = ("nemo_gym", "nemo.lens", "uvicorn.main")


def _asked_for():
    """Whether NeMo Gym would switch its telemetry on: the first of its two variables that is set decides."""
    for name in ("NEMO_GYM_OTEL_ENABLED", "NEMO_LENS_ENABLED"):
        value = os.environ.get(name, "").strip().lower()
        if value:
            return value in ("1", "true", "yes", "on")
    return False


class _Watch:
    """Stands in front of the import system and waits for the two packages; everything else passes untouched."""

    said = False

    def say(self, state, details):
        if not self.said:
            self.said = True
            sys.stderr.write("gymrun: lens-compat: %s %s\n" % (state, details))
            sys.stderr.flush()

    def find_spec(self, name, path=None, target=None):
        if name not in _WATCHED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        if name == "nemo_gym":
            self.check_gym(spec)
        else:
            spec.loader = _Loader(spec.loader, self.loaded_lens if name == "nemo.lens" else _separate_requests)
        return spec

    def loaded_lens(self, module, error):
        """Looks at what came of `nemo.lens`."""
        if error is not None:
            self.say("no-telemetry", "nemo-lens cannot be imported: %s" % error)
            return
        opentelemetry = PathFinder.find_spec("opentelemetry")
        if opentelemetry is None or PathFinder.find_spec("opentelemetry.sdk", opentelemetry.submodule_search_locations) is None:
            self.say("no-telemetry", "the OpenTelemetry SDK is not installed in %s (install `nemo-gym[telemetry]`)" % sys.prefix)
            return
        try:
            added = _add_missing_names()
        except Exception as error:  # a server runs without telemetry rather than not at all
            self.say("no-telemetry", "nemo-lens %s could not be patched: %r" % (_version(module), error))
            return
        if added:
            self.say("patched", "nemo-lens %s lacks %s, which were added" % (_version(module), ", ".join(added)))

    def check_gym(self, spec):
        """Looks for what telemetry needs without importing any of it."""
        if PathFinder.find_spec("nemo_gym.telemetry", spec.submodule_search_locations) is None:
            self.say("no-telemetry", "this NeMo Gym has no telemetry (0.7.0 has)")
            return
        namespace = PathFinder.find_spec("nemo")
        locations = namespace.submodule_search_locations if namespace else None
        if locations is None or PathFinder.find_spec("nemo.lens", locations) is None:
            self.say("no-telemetry", "nemo-lens is not installed in %s (install `nemo-gym[telemetry]`)" % sys.prefix)


class _Loader:
    """Loads a module as its own loader does, then has `loaded(module, error)` look at what came."""

    def __init__(self, loader, loaded):
        self._loader = loader
        self._loaded = loaded

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The module is left as if its own loader had been the only one.
        module.__loader__ = module.__spec__.loader = self._loader
        try:
            self._loader.exec_module(module)
        except ImportError as error:
            self._loaded(module, error)
            raise
        self._loaded(module, None)


def _separate_requests(module, error):
    """Has `uvicorn.run` start each request in an empty context, unless its caller says otherwise; older releases cannot."""
    defaults = getattr(getattr(module, "run", None), "__kwdefaults__", None)
    if error is None and defaults and "reset_contextvars" in defaults:
        defaults["reset_contextvars"] = True


def _version(module):
    return getattr(module, "__version__", "of unknown version")


def _add_missing_names():
    """Adds to nemo-lens what it lacks; returns the names added."""
    from nemo.lens import groups, semconv

    added = []
    for name, value in (("NV_DL_RANK", "nv.dl.rank"), ("NV_DL_WORLD_SIZE", "nv.dl.world_size")):
        if not hasattr(semconv, name):
            setattr(semconv, name, value)
            added.append(name)
    if not hasattr(groups, "SpanRegistry"):
        _add_span_registry(groups)
        added.append("SpanRegistry")
    return added


def _add_span_registry(groups):
    """A registry of span groups by library, and the old way to resolve a specification taught to ask it."""

    class SpanRegistry:
        """Libraries register their span groups and presets; a specification selects among all of them."""

        _libraries = {}

        @classmethod
        def register(cls, namespace, groups=(), presets=None, allow_override=False):
            if namespace in cls._libraries and not allow_override:
                raise ValueError("span groups of %r are registered already" % namespace)
            cls._libraries[namespace] = (frozenset(groups), dict(presets or {}))

        @classmethod
        def unregister(cls, namespace):
            cls._libraries.pop(namespace, None)

        @classmethod
        def resolve(cls, spec):
            """The groups that a comma list of groups and presets selects, and the words that mean nothing."""
            every = frozenset().union(*(groups for groups, _ in cls._libraries.values()))
            selected, unknown = set(), set()
            for word in filter(None, (part.strip().lower() for part in str(spec).split(","))):
                named = [presets[word] for _, presets in cls._libraries.values() if word in presets]
                if word == "all":
                    selected |= every
                elif named:
                    selected.update(*named)
                elif word in every:
                    selected.add(word)
                else:
                    unknown.add(word)
            return frozenset(selected), frozenset(unknown)

    own_resolve = groups.SpanGroup.resolve.__func__

    def resolve(cls, spec):
        if cls is not groups.SpanGroup or not SpanRegistry._libraries:
            return own_resolve(cls, spec)
        selected, unknown = SpanRegistry.resolve(spec)
        if unknown:
            import logging

            logging.getLogger("nemo.lens").warning("unknown span groups are ignored: %s", ", ".join(sorted(unknown)))
        return selected

    groups.SpanRegistry = SpanRegistry
    groups.SpanGroup.resolve = classmethod(resolve)


def _run_hidden():
    """Runs the next `sitecustomize` on the path, which this file hides, as if it had been the only one."""
    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if os.path.abspath(entry) != here])
    if spec is None or spec.loader is None or os.path.abspath(spec.origin or "") == os.path.abspath(__file__):
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if _asked_for():
    sys.meta_path.insert(0, _Watch())
_run_hidden()
