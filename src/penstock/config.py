"""Settings: read once at the start of a process and passed down.

Nothing below reads the environment for itself. For each setting the first of these that has it
wins: a flag, `PENSTOCK_<NAME>` in the environment, `penstock.toml` in the working directory, the
default. A value that can't be used is refused with its source and what is allowed.

    # penstock.toml
    port = 8080
    http_allow = ["10.0.0.0/8", "billing.internal"]

    [llm.providers.local]
    base_url = "http://localhost:11434/v1"
    models = ["llama3.2"]

    [secrets.API_TOKEN]
    hosts = ["api.example.com"]
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.errors import SettingsError
from penstock.spelling import nearest_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FILE_NAME = "penstock.toml"
PREFIX = "PENSTOCK_"
REDIS_SCHEMES = ("redis", "rediss", "redis+sentinel", "rediss+sentinel")
STORE_SCHEMES = ("sqlite", "memory", *REDIS_SCHEMES)
"""Of the stores that come with Penstock.

Other packages register theirs under `STORE_ENTRY_POINTS`.
"""
STORE_ENTRY_POINTS = "penstock.stores"
OPENAI_URL = "https://api.openai.com/v1"

KIB = 1024
MIB = 1024 * KIB

PERIOD_SECONDS_MIN = 0.05
PERIOD_SECONDS_MAX = 86400.0
LEASE_SECONDS_MIN = 1.0
"""A lease is renewed four times in its life: a pause of 300 ms must not cost it."""

Reader: TypeAlias = Callable[[Any], Any]
"""Turns text, or a value from TOML or a flag, into the setting's type; ValueError says what is
allowed.
"""

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_UNITS = {
    "": 1,
    "b": 1,
    "k": KIB,
    "kb": 1000,
    "kib": KIB,
    "m": MIB,
    "mb": 1000**2,
    "mib": MIB,
    "g": 1024 * MIB,
    "gb": 1000**3,
    "gib": 1024 * MIB,
}
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_LOG_FORMATS = ("auto", "json", "console")
_REQUIRE_KEYS = ("auto", "always", "never")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?", re.IGNORECASE)


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint for the end of a message, or nothing when none of the names is close."""
    closest = nearest_name(name, names, cutoff=0.5)
    return f"; did you mean '{closest}'?" if closest else ""


def hide_password(url: str) -> str:
    url = re.sub(r"(://[^/?#:]*):[^/?#]*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&][^=&]*password=)[^&#]*", r"\1***", url)


def _text(raw: Any) -> str:
    if isinstance(raw, (str, Path)) and str(raw):
        return str(raw)
    raise ValueError("text")


def _boolean(raw: Any) -> bool:
    text = str(raw).strip().lower()
    if text not in _TRUE | _FALSE:
        raise ValueError("true or false")
    return text in _TRUE


def _whole(minimum: int, maximum: int | None = None) -> Reader:
    allowed = f"a whole number, {minimum} or more"
    if maximum is not None:
        allowed = f"a whole number from {minimum} to {maximum}"

    def read(raw: Any) -> int:
        if isinstance(raw, (bool, float)) or not re.fullmatch(r"\s*\d{1,15}\s*", str(raw)):
            raise ValueError(allowed)
        number = int(raw)
        if number < minimum or (maximum is not None and number > maximum):
            raise ValueError(allowed)
        return number

    return read


def _number(of_what: str) -> Reader:
    def read(raw: Any) -> float:
        try:
            number = -1.0 if isinstance(raw, bool) else float(raw)
        except (TypeError, ValueError):
            number = -1.0
        if not 0 <= number < float("inf"):
            raise ValueError(f"a number of {of_what}, 0 or more")
        return number

    return read


def _seconds_above_zero(raw: Any) -> float:
    seconds: float = _number("seconds")(raw)
    if not seconds:
        raise ValueError("a number of seconds above 0")
    return seconds


def _period(raw: Any) -> float:
    try:
        seconds: float = _seconds_above_zero(raw)
    except ValueError:
        seconds = 0.0
    if not PERIOD_SECONDS_MIN <= seconds <= PERIOD_SECONDS_MAX:
        raise ValueError(
            f"a number of seconds from {PERIOD_SECONDS_MIN:g} to {PERIOD_SECONDS_MAX:g}"
        )
    return seconds


def _size(raw: Any) -> int:
    match = re.fullmatch(r"\s*(\d{1,15})\s*([a-zA-Z]*)\s*", str(raw))
    count = 0
    unit = ""
    if match is not None and not isinstance(raw, bool):
        count = int(match[1])
        unit = match[2].lower()
    if count == 0 or unit not in _UNITS:
        raise ValueError("a number of bytes above 0, such as 65536, '256 KiB' or '64 MiB'")
    return count * _UNITS[unit]


def _list(raw: Any) -> tuple[str, ...]:
    if isinstance(raw, str):
        raw = [part.strip() for part in raw.split(",")]
    if not isinstance(raw, (list, tuple)) or not all(isinstance(item, str) for item in raw):
        raise ValueError("a list of texts (in the environment: separated by commas)")
    return tuple(item for item in raw if item)


def _hosts(raw: Any) -> tuple[str, ...]:
    from ipaddress import ip_network  # noqa: PLC0415 -- most processes never name a network

    entries = _list(raw)
    for entry in entries:
        try:
            ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            if not _HOST.fullmatch(entry):
                raise ValueError(
                    "host names, addresses or networks such as"
                    f" 'api.internal', '10.1.2.3', '10.0.0.0/8' (and '{entry}' is none)"
                ) from None
    return tuple(entry.strip("[]").lower() for entry in entries)


def _networks(raw: Any) -> tuple[str, ...]:
    from ipaddress import ip_network  # noqa: PLC0415 -- most processes never name a network

    try:
        return tuple(str(ip_network(entry.strip("[]"), strict=False)) for entry in _list(raw))
    except ValueError as error:
        raise ValueError(
            f"addresses or networks such as '10.1.2.3', '10.0.0.0/8' ({error})"
        ) from None


def _level(raw: Any) -> str:
    level = str(raw).upper()
    if level not in _LEVELS:
        raise ValueError("one of " + ", ".join(_LEVELS))
    return level


def _log_format(raw: Any) -> str:
    form = str(raw).strip().lower()
    if form not in _LOG_FORMATS:
        raise ValueError("one of " + ", ".join(_LOG_FORMATS))
    return form


def _require_keys(raw: Any) -> str:
    text = str(raw).strip().lower()
    if text in _TRUE:
        return "always"
    if text in _FALSE:
        return "never"
    if text not in _REQUIRE_KEYS:
        raise ValueError("one of " + ", ".join(_REQUIRE_KEYS))
    return text


def _rate(raw: Any) -> str:
    text = str(raw).strip().lower()
    if not re.fullmatch(r"off|[1-9]\d{0,8}/(second|minute|hour|day)", text):
        raise ValueError("a limit such as '60/minute' (second, minute, hour, day), or 'off'")
    return text


def _url(*schemes: str) -> Reader:
    beginnings = tuple(f"{scheme}://" for scheme in schemes)

    def read(raw: Any) -> str:
        if not isinstance(raw, str) or not raw.startswith(beginnings):
            raise ValueError("a URL that starts with " + " or ".join(beginnings))
        return raw

    return read


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a service that is bound to this host."""
    from ipaddress import ip_address  # noqa: PLC0415 -- most processes never ask

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_redis(store: str) -> bool:
    return scheme_of(store) in REDIS_SCHEMES


def scheme_of(address: str) -> str:
    return address.partition("://")[0]


def installed_stores() -> dict[str, EntryPoint]:
    """Stores of other packages, by the scheme of their addresses.

    They can't take the place of one of ours.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 -- rarely needed

    entries = {entry.name: entry for entry in entry_points(group=STORE_ENTRY_POINTS)}
    schemes = sorted(entries.keys() - set(STORE_SCHEMES))
    return {scheme: entries[scheme] for scheme in schemes}


def _store_address(raw: Any) -> str:
    if isinstance(raw, str) and "://" in raw:
        scheme = scheme_of(raw)
        if scheme in STORE_SCHEMES or scheme in installed_stores():
            return raw
    schemes = (*STORE_SCHEMES, *installed_stores())
    beginnings = " or ".join(f"{scheme}://" for scheme in schemes)
    raise ValueError(
        f"a URL that starts with {beginnings}; for another store install a package that has it"
        f" (entry point '{STORE_ENTRY_POINTS}') in this Python"
    )


def _setting(default: Any, read: Reader) -> Any:
    return field(default=default, metadata={"read": read})


@dataclass(frozen=True, slots=True)
class LlmProvider:
    """An OpenAI-compatible endpoint.

    `models`: the ones on offer, the first being the default; empty means any.
    """

    base_url: str = OPENAI_URL
    api_key: str | None = field(default=None, repr=False)
    models: tuple[str, ...] = ()
    reads_openai_key: bool = field(default=False, compare=False)
    """Whether the variable OPENAI_API_KEY may hold its key; only for hints."""


@dataclass(frozen=True, slots=True)
class SecretRule:
    """Where a secret may be used. None means anywhere; what is given must all be met."""

    hosts: tuple[str, ...] | None = None
    """`api.example.com`, `*.example.com` for every name below it, or an address."""
    handlers: tuple[str, ...] | None = None
    workflows: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The periods in which crashes are noticed and repaired.

    `Settings.timing` makes one that is known to make sense.
    """

    heartbeat_seconds: float = 5.0
    """How often a worker says that it lives."""
    worker_dead_seconds: float = 15.0
    """A worker that has said nothing for so long is dead, and its tasks are taken back."""
    reaper_seconds: float = 1.0
    """How often an orchestrator looks at the workers' heartbeats."""
    lease_seconds: float = 5.0
    """For how long an orchestrator owns a partition without renewing its lease."""
    reconcile_seconds: float = 10.0
    """How often an owner looks for executions that were accepted and whose start got lost."""
    stale_seconds: float = 10.0
    """A start that hasn't arrived after so long is counted as lost (`penstock_swept_total`)."""
    checkpoint_seconds: float = 10.0
    """How often what runs is copied from Redis to PostgreSQL."""
    archive_seconds: float = 1.0
    """How often an owner looks for ended executions that nobody told it to archive."""
    retention_check_seconds: float = 3600.0
    """How often it is looked for executions and audit lines that are older than they are kept."""

    def check(self) -> None:
        """Raises `SettingsError` for times that don't go together."""
        least_dead = 2 * self.heartbeat_seconds + 2 * self.reaper_seconds
        if self.worker_dead_seconds < least_dead:
            raise SettingsError(
                f"worker_dead_seconds is {self.worker_dead_seconds:g},"
                f" and must be at least {least_dead:g}:"
                f" twice heartbeat_seconds ({self.heartbeat_seconds:g})"
                f" and twice reaper_seconds ({self.reaper_seconds:g}),"
                " or one late heartbeat would make a live worker dead; raise it, or lower those"
            )
        if self.lease_seconds < LEASE_SECONDS_MIN:
            raise SettingsError(
                f"lease_seconds is {self.lease_seconds:g},"
                f" and must be at least {LEASE_SECONDS_MIN:g}:"
                " a lease is renewed four times in its life,"
                " and a short pause between two renewals must not cost it; raise it"
            )
        if self.stale_seconds > self.reconcile_seconds:
            raise SettingsError(
                f"stale_seconds is {self.stale_seconds:g},"
                f" and may be at most reconcile_seconds ({self.reconcile_seconds:g}):"
                " a lost start is made up at the next look,"
                " and one that is lost would never be old enough to be counted;"
                " lower it, or raise reconcile_seconds"
            )
        if self.archive_seconds > self.checkpoint_seconds:
            raise SettingsError(
                f"archive_seconds is {self.archive_seconds:g},"
                f" and may be at most checkpoint_seconds ({self.checkpoint_seconds:g}):"
                " what has ended is copied to PostgreSQL only by being archived,"
                " and must not be at risk for longer than what runs;"
                " lower it, or raise checkpoint_seconds"
            )


_TIMES = Timing()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    store: str = _setting("sqlite:///penstock.db", _store_address)
    database: str | None = _setting(None, _url("postgresql", "postgres"))
    partitions: int | None = _setting(None, _whole(1, 1024))
    retention_days: float = _setting(7.0, _number("days"))
    waiting_tasks_max: int = _setting(1_000_000, _whole(0))
    workflow_unfinished_max: int = _setting(1_000_000, _whole(0))
    audit_retention_days: float = _setting(365.0, _number("days"))
    heartbeat_seconds: float = _setting(_TIMES.heartbeat_seconds, _period)
    worker_dead_seconds: float = _setting(_TIMES.worker_dead_seconds, _period)
    reaper_seconds: float = _setting(_TIMES.reaper_seconds, _period)
    lease_seconds: float = _setting(_TIMES.lease_seconds, _period)
    reconcile_seconds: float = _setting(_TIMES.reconcile_seconds, _period)
    stale_seconds: float = _setting(_TIMES.stale_seconds, _period)
    checkpoint_seconds: float = _setting(_TIMES.checkpoint_seconds, _period)
    archive_seconds: float = _setting(_TIMES.archive_seconds, _period)
    retention_check_seconds: float = _setting(_TIMES.retention_check_seconds, _period)
    host: str = _setting("127.0.0.1", _text)
    port: int = _setting(8000, _whole(0, 65535))
    blobs: str | None = _setting(None, _text)
    worker_concurrency: int = _setting(256, _whole(1))
    worker_threads: int = _setting(32, _whole(1))
    worker_processes: int = _setting(os.cpu_count() or 1, _whole(1))
    queues: tuple[str, ...] = _setting((), _list)
    handlers: tuple[str, ...] = _setting((), _list)
    rate_limit: str | None = _setting(None, _rate)
    rate_limit_reads: str | None = _setting(None, _rate)
    require_keys: str = _setting("auto", _require_keys)
    trusted_proxies: tuple[str, ...] = _setting((), _networks)
    log_level: str = _setting("INFO", _level)
    log_format: str = _setting("auto", _log_format)
    tracing: bool = _setting(default=False, read=_boolean)
    mock_services: bool = _setting(default=False, read=_boolean)
    mock_seconds: float = _setting(0.0, _number("seconds"))
    http_allow: tuple[str, ...] = _setting((), _hosts)
    http_private: bool = _setting(default=False, read=_boolean)
    http_max_response_bytes: int = _setting(64 * MIB, _size)
    output_max_bytes: int = _setting(64 * MIB, _size)
    inline_max_bytes: int = _setting(256 * KIB, _size)
    log_max_bytes: int = _setting(64 * KIB, _size)
    expression_seconds: float = _setting(2.0, _seconds_above_zero)
    expression_memory_bytes: int = _setting(384 * MIB, _size)
    expression_processes: int = _setting(2, _whole(1))
    no_handler_seconds: float = _setting(300.0, _number("seconds"))
    shutdown_grace_seconds: float = _setting(10.0, _number("seconds"))
    document_max_bytes: int = _setting(10 * MIB, _size)
    document_max_nodes: int = _setting(100_000, _whole(1))
    document_max_depth: int = _setting(64, _whole(1))
    map_items_max: int = _setting(10_000, _whole(1, 100_000))
    notify_secret: str | None = _setting(None, _text)
    """Signs what `notify` of approvals posts, and the links in it."""
    public_url: str | None = _setting(None, _text)
    """Where people reach the API and the UI: what links in notifications begin with."""
    secrets_file: str | None = _setting(None, _text)
    secret_rules: Mapping[str, SecretRule] = field(default_factory=dict)
    """By the secret's name in capitals: names are found in either case."""
    llm_default_provider: str = _setting("default", _text)
    llm_providers: Mapping[str, LlmProvider] = field(
        default_factory=lambda: {"default": LlmProvider()}
    )

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        directory: Path | None = None,
        *,
        application_urls: bool = False,
    ) -> Settings:
        """Read all sources. A flag of None and an empty variable count as not given.

        `application_urls` also reads `REDIS_URL` and `DATABASE_URL`, behind everything that names
        Penstock: for the roles that run on an application's servers, never for `run` and `dev`,
        which must not touch them unasked.
        """
        environ = os.environ if environ is None else environ
        path = (directory or Path.cwd()) / FILE_NAME
        table, llm, secrets = _read_file(path)

        values: dict[str, Any] = {}
        if application_urls:
            values |= _from_application(environ)
        values |= {name: _read(name, raw, f"{path}: {name}") for name, raw in table.items()}
        values |= _from_environment(environ)
        values |= _from_flags(flags or {})

        settings = cls(
            **values,
            llm_providers=_providers(llm, environ, path),
            secret_rules=_secret_rules(secrets, path),
        )
        if settings.llm_default_provider not in settings.llm_providers:
            names = ", ".join(sorted(settings.llm_providers))
            raise SettingsError(
                f"llm_default_provider is '{settings.llm_default_provider}'; known are: {names}"
            )
        _ = settings.timing  # refused now rather than when a role starts
        return settings

    @property
    def timing(self) -> Timing:
        """The periods of these settings, which may not have come through `load`.

        Raises `SettingsError` for times that don't go together.
        """
        timing = Timing(**{item.name: getattr(self, item.name) for item in fields(Timing)})
        timing.check()
        return timing

    @property
    def names_models(self) -> bool:
        """Whether an LLM provider has models, of which a node without a model gets the first."""
        return any(provider.models for provider in self.llm_providers.values())

    def describe(self) -> dict[str, Any]:
        """What is in force, as JSON, without passwords and keys."""
        values = {item.name: _describe_value(getattr(self, item.name)) for item in fields(self)}
        values["notify_secret"] = self.notify_secret and "***"
        values["llm_providers"] = {
            name: {
                "base_url": hide_password(provider.base_url),
                "api_key": provider.api_key and "***",
                "models": list(provider.models),
            }
            for name, provider in self.llm_providers.items()
        }
        values["secret_rules"] = {
            name: _describe_rule(rule) for name, rule in self.secret_rules.items()
        }
        return values

    def __repr__(self) -> str:
        return f"Settings({self.describe()})"


_RULES = ("hosts", "handlers", "workflows")
_READERS: dict[str, Reader] = {
    item.name: item.metadata["read"] for item in fields(Settings) if item.metadata
}


def _describe_value(value: Any) -> Any:
    if isinstance(value, str):
        return hide_password(value)
    return list(value) if isinstance(value, tuple) else value


def _describe_rule(rule: SecretRule) -> dict[str, list[str]]:
    parts: dict[str, list[str]] = {}
    for key in _RULES:
        allowed = getattr(rule, key)
        if allowed is not None:
            parts[key] = list(allowed)
    return parts


def _quote_value(raw: Any) -> str:
    """A value as it stands in a message, without passwords."""
    return f"'{hide_password(raw)}'" if isinstance(raw, str) else str(raw)


def _read(name: str, raw: Any, source: str) -> Any:
    try:
        return _READERS[name](raw)
    except ValueError as error:
        raise SettingsError(f"{source} is {_quote_value(raw)}; allowed: {error}") from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    return _from_variables({name: PREFIX + name.upper() for name in _READERS}, environ)


def _from_application(environ: Mapping[str, str]) -> dict[str, Any]:
    return _from_variables({"store": "REDIS_URL", "database": "DATABASE_URL"}, environ)


def _from_variables(variables: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, variable in variables.items():
        raw = environ.get(variable)
        if raw:
            values[name] = _read(name, raw, variable)
    return values


def _from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    for name in flags.keys() - _READERS.keys():
        raise SettingsError(f"there is no setting '{name}'{nearest(name, _READERS)}")
    values: dict[str, Any] = {}
    for name, raw in flags.items():
        if raw is not None:
            flag = "--" + name.replace("_", "-")
            values[name] = _read(name, raw, flag)
    return values


def _read_file(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The plain settings, the providers of `[llm]` and the `[secrets]` table.

    All are empty when there is no file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, {}, {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} can't be read: {error}") from None
    import tomllib  # noqa: PLC0415 -- most processes have no file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} isn't TOML: {error}") from None

    llm = _table(table.pop("llm", {}), {"providers", "default_provider"}, f"{path}: [llm]")
    if "default_provider" in llm:
        table["llm_default_provider"] = llm["default_provider"]
    secrets = table.pop("secrets", {})
    plain = _table(table, {*_READERS, "llm", "secrets"}, str(path))
    return plain, llm.get("providers", {}), secrets


def _secret_rules(tables: Any, path: Path) -> dict[str, SecretRule]:
    if not isinstance(tables, dict):
        raise SettingsError(
            f"{path}: [secrets] must be a table of tables, one for each secret;"
            " values don't stand here"
        )
    rules: dict[str, SecretRule] = {}
    for name, raw in tables.items():
        source = f"{path}: [secrets.{name}]"
        # neither a value that somebody wrote here by mistake, nor its type, is quoted
        if not isinstance(raw, dict):
            raise SettingsError(
                f"{source} must be a table with {', '.join(_RULES)}; values don't stand here"
            )
        table = _table(raw, set(_RULES), source)
        parts = {key: _rule(value, f"{source}: {key}") for key, value in table.items()}
        rules[name.upper()] = SecretRule(**parts)
    return rules


def _rule(raw: Any, source: str) -> tuple[str, ...]:
    try:
        return _list(raw)
    except ValueError as error:
        raise SettingsError(f"{source} must be {error}") from None


def _table(table: Any, names: set[str], source: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise SettingsError(f"{source} must be a table")
    for name in table.keys() - names:
        raise SettingsError(f"{source}: there is no setting '{name}'{nearest(name, names)}")
    return table


def key_variable(provider: str) -> str:
    """The environment variable that holds this provider's key."""
    if provider == "default":
        return f"{PREFIX}LLM_API_KEY"
    name = re.sub(r"[^A-Z0-9]", "_", provider.upper())
    return f"{PREFIX}LLM_{name}_API_KEY"


def _providers(tables: Any, environ: Mapping[str, str], path: Path) -> dict[str, LlmProvider]:
    if not isinstance(tables, dict):
        raise SettingsError(f"{path}: [llm.providers] must be a table of tables")
    providers = {
        name: _provider(table, f"{path}: [llm.providers.{name}]") for name, table in tables.items()
    }

    base = environ.get(f"{PREFIX}LLM_BASE_URL")
    key = environ.get(key_variable("default"))
    # Address and key are taken from the same family of variables: OpenAI's key must never go to
    # another provider.
    if "default" not in providers and not base and not key:
        base = environ.get("OPENAI_BASE_URL") or OPENAI_URL
        key = environ.get("OPENAI_API_KEY") or None
        base_url = _base_url(base, "OPENAI_BASE_URL")
        providers["default"] = LlmProvider(base_url, key, reads_openai_key=True)
    elif base:
        base_url = _base_url(base, f"{PREFIX}LLM_BASE_URL")
        default = providers.get("default", LlmProvider())
        providers["default"] = replace(default, base_url=base_url)
    providers.setdefault("default", LlmProvider())

    for name, provider in providers.items():
        api_key = environ.get(key_variable(name)) or provider.api_key or ""
        providers[name] = replace(provider, api_key=api_key.strip() or None)
    return providers


def _provider(table: Any, source: str) -> LlmProvider:
    table = _table(table, {"base_url", "api_key", "models"}, source)
    key = table.get("api_key")
    if key is not None and not isinstance(key, str):
        raise SettingsError(f"{source}: api_key must be text")
    try:
        models = _list(table.get("models", ()))
    except ValueError as error:
        raise SettingsError(f"{source}: models is {table['models']}; allowed: {error}") from None
    base_url = _base_url(table.get("base_url", OPENAI_URL), f"{source}: base_url")
    return LlmProvider(base_url, key or None, models)


def _base_url(raw: Any, source: str) -> str:
    try:
        return str(_url("http", "https")(raw)).rstrip("/")
    except ValueError as error:
        raise SettingsError(f"{source} is {_quote_value(raw)}; allowed: {error}") from None
