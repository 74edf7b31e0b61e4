from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock.config import OPENAI_URL, LlmProvider, SecretRule, Settings, hide_password
from penstock.errors import SettingsError


def load(
    tmp_path: Path,
    toml: str = "",
    environ: dict[str, str] | None = None,
    flags: dict[str, Any] | None = None,
    **environment: Any,
) -> Settings:
    if toml:
        (tmp_path / "penstock.toml").write_text(toml)
    return Settings.load(flags, environ or {}, tmp_path, **environment)


def refusal(tmp_path: Path, *arguments: Any, **options: Any) -> str:
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, *arguments, **options)
    return str(raised.value).replace(str(tmp_path), "DIR")


def test_the_defaults_need_nothing(tmp_path):
    settings = load(tmp_path)
    assert settings == Settings()
    assert (settings.store, settings.host, settings.port) == (
        "sqlite:///penstock.db",
        "127.0.0.1",
        8000,
    )
    assert settings.worker_processes >= 1


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path):
    toml = "port = 1\nworker_threads = 1\nworker_concurrency = 1"
    environ = {"PENSTOCK_PORT": "2", "PENSTOCK_WORKER_THREADS": "2"}
    settings = load(tmp_path, toml, environ, {"port": 3, "host": None})
    assert (settings.port, settings.worker_threads, settings.worker_concurrency) == (3, 2, 1)
    assert settings.host == "127.0.0.1"


def test_the_process_environment_and_working_directory_are_the_default_sources(
    tmp_path, monkeypatch
):
    (tmp_path / "penstock.toml").write_text("port = 81")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_HOST", "0.0.0.0")  # noqa: S104
    settings = Settings.load()
    assert (settings.host, settings.port) == ("0.0.0.0", 81)  # noqa: S104


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("store", "redis://localhost/0", "redis://localhost/0"),
        ("store", "memory://", "memory://"),
        ("database", "postgresql://u:p@h/d", "postgresql://u:p@h/d"),
        ("queues", "a, b,,c", ("a", "b", "c")),
        ("handlers", "app.tasks,./more.py", ("app.tasks", "./more.py")),
        ("mock_services", "1", True),
        ("mock_services", "No", False),
        ("http_private", "true", True),
        ("http_allow", "API.internal, 10.0.0.0/8,[::1]", ("api.internal", "10.0.0.0/8", "::1")),
        ("http_max_response_bytes", "2 MiB", 2 * 1024 * 1024),
        ("inline_max_bytes", "1000", 1000),
        ("log_max_bytes", "10kB", 10_000),
        ("log_level", "debug", "DEBUG"),
        ("log_format", " JSON", "json"),
        ("tracing", "on", True),
        ("rate_limit", "60/minute", "60/minute"),
        ("shutdown_grace_seconds", "2.5", 2.5),
        ("partitions", "16", 16),
        ("retention_days", "0.5", 0.5),
        ("secrets_file", "/run/secrets", "/run/secrets"),
        ("blobs", "", None),
    ],
)
def test_the_environment_is_read_by_the_type_of_the_setting(tmp_path, name, text, value):
    assert getattr(load(tmp_path, environ={f"PENSTOCK_{name.upper()}": text}), name) == value


def test_the_file_has_typed_values(tmp_path):
    settings = load(
        tmp_path,
        'queues = ["a", "b"]\nmock_services = true\n'
        'shutdown_grace_seconds = 3\nlog_max_bytes = "1 KiB"',
    )
    assert settings.queues == ("a", "b")
    assert settings.mock_services is True
    assert (settings.shutdown_grace_seconds, settings.log_max_bytes) == (3.0, 1024)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"environ": {"PENSTOCK_PORT": "http"}},
            "PENSTOCK_PORT is 'http'; allowed: a whole number from 0 to 65535",
        ),
        ({"flags": {"port": 70000}}, "--port is 70000; allowed: a whole number from 0 to 65535"),
        (
            {"toml": "port = true"},
            "DIR/penstock.toml: port is True; allowed: a whole number from 0 to 65535",
        ),
        (
            {"toml": "port = 8000.5"},
            "DIR/penstock.toml: port is 8000.5; allowed: a whole number from 0 to 65535",
        ),
        (
            {"flags": {"worker_threads": 0}},
            "--worker-threads is 0; allowed: a whole number, 1 or more",
        ),
        (
            {"environ": {"PENSTOCK_MOCK_SERVICES": "maybe"}},
            "PENSTOCK_MOCK_SERVICES is 'maybe'; allowed: true or false",
        ),
        (
            {"environ": {"PENSTOCK_LOG_LEVEL": "loud"}},
            "PENSTOCK_LOG_LEVEL is 'loud'; allowed: one of DEBUG, INFO, WARNING, ERROR, CRITICAL",
        ),
        (
            {"toml": 'log_format = "xml"'},
            "DIR/penstock.toml: log_format is 'xml'; allowed: one of auto, json, console",
        ),
        ({"environ": {"PENSTOCK_TRACING": "2"}}, "PENSTOCK_TRACING is '2'; allowed: true or false"),
        (
            {"environ": {"PENSTOCK_STORE": "mysql://u:secret@h/d"}},
            (
                "PENSTOCK_STORE is 'mysql://u:***@h/d'; "
                "allowed: a URL that starts with sqlite:// or memory:// or redis:// or "
                "rediss:// or "
                "redis+sentinel:// or rediss+sentinel://; for another store install a package "
                "that has it "
                "(entry point 'penstock.stores') in this Python"
            ),
        ),
        (
            {"environ": {"PENSTOCK_HTTP_ALLOW": "ok.test,http://x/"}},
            (
                "PENSTOCK_HTTP_ALLOW is 'ok.test,http://x/'; "
                "allowed: host names, addresses or networks "
                "such as 'api.internal', '10.1.2.3', '10.0.0.0/8' (and 'http://x/' is none)"
            ),
        ),
        (
            {"toml": "queues = [1]"},
            (
                "DIR/penstock.toml: queues is [1]; "
                "allowed: a list of texts (in the environment: separated by commas)"
            ),
        ),
        (
            {"environ": {"PENSTOCK_OUTPUT_MAX_BYTES": "many"}},
            (
                "PENSTOCK_OUTPUT_MAX_BYTES is 'many'; "
                "allowed: a number of bytes above 0, such as 65536, '256 KiB' or '64 MiB'"
            ),
        ),
        (
            {"environ": {"PENSTOCK_SHUTDOWN_GRACE_SECONDS": "-1"}},
            "PENSTOCK_SHUTDOWN_GRACE_SECONDS is '-1'; allowed: a number of seconds, 0 or more",
        ),
        (
            {"environ": {"PENSTOCK_RATE_LIMIT": "60"}},
            (
                "PENSTOCK_RATE_LIMIT is '60'; "
                "allowed: a limit such as '60/minute' (second, minute, hour, day), or 'off'"
            ),
        ),
        (
            {"toml": "prot = 1"},
            "DIR/penstock.toml: there is no setting 'prot'; did you mean 'port'?",
        ),
        ({"toml": "zzzzzz = 1"}, "DIR/penstock.toml: there is no setting 'zzzzzz'"),
        ({"flags": {"queue": "a"}}, "there is no setting 'queue'; did you mean 'queues'?"),
        ({"toml": "port ="}, "DIR/penstock.toml isn't TOML: Invalid value (at end of document)"),
        ({"toml": "llm = 1"}, "DIR/penstock.toml: [llm] must be a table"),
        (
            {"toml": "[llm.provider.x]"},
            "DIR/penstock.toml: [llm]: there is no setting 'provider'; did you mean 'providers'?",
        ),
        (
            {"toml": "[llm.providers.x]\nurl = 'http://a'"},
            (
                "DIR/penstock.toml: [llm.providers.x]: there is no setting 'url'; "
                "did you mean 'base_url'?"
            ),
        ),
        (
            {"toml": "[llm.providers.x]\nbase_url = 'a.test'"},
            (
                "DIR/penstock.toml: [llm.providers.x]: base_url is 'a.test'; "
                "allowed: a URL that starts with http:// or https://"
            ),
        ),
        (
            {"environ": {"PENSTOCK_LLM_DEFAULT_PROVIDER": "groq"}},
            "llm_default_provider is 'groq'; known are: default",
        ),
    ],
)
def test_a_bad_value_is_refused_with_its_source_and_what_is_allowed(tmp_path, options, text):
    assert refusal(tmp_path, **options) == text


def test_a_bad_key_is_refused_without_showing_it(tmp_path):
    text = refusal(tmp_path, "[llm.providers.x]\napi_key = ['canary']")
    assert text == "DIR/penstock.toml: [llm.providers.x]: api_key must be text"


class TestApplicationUrls:
    ENVIRON: ClassVar = {"REDIS_URL": "redis://app/0", "DATABASE_URL": "postgres://app/d"}

    def test_are_left_alone_unless_asked_for(self, tmp_path):
        settings = load(tmp_path, environ=self.ENVIRON)
        assert (settings.store, settings.database) == ("sqlite:///penstock.db", None)

    def test_come_last_when_asked_for(self, tmp_path):
        settings = load(tmp_path, environ=self.ENVIRON, application_urls=True)
        assert (settings.store, settings.database) == ("redis://app/0", "postgres://app/d")
        settings = load(tmp_path, 'store = "redis://own/1"', self.ENVIRON, application_urls=True)
        assert (settings.store, settings.database) == ("redis://own/1", "postgres://app/d")


class TestProviders:
    def test_the_default_one_is_openai(self, tmp_path):
        assert load(tmp_path).llm_providers == {"default": LlmProvider(OPENAI_URL, None, ())}

    def test_the_environment_gives_the_default_one(self, tmp_path):
        environ = {
            "PENSTOCK_LLM_BASE_URL": "http://localhost:11434/v1/",
            "PENSTOCK_LLM_API_KEY": " k1\n",
        }
        assert load(tmp_path, environ=environ).llm_providers["default"] == LlmProvider(
            "http://localhost:11434/v1", "k1"
        )

    def test_openai_s_own_variables_are_a_fallback(self, tmp_path):
        environ = {"OPENAI_API_KEY": "k2", "OPENAI_BASE_URL": "https://proxy.test/v1"}
        assert load(tmp_path, environ=environ).llm_providers["default"] == LlmProvider(
            "https://proxy.test/v1", "k2"
        )

    def test_the_key_of_openai_never_goes_to_another_provider(self, tmp_path):
        environ = {"OPENAI_API_KEY": "k2", "PENSTOCK_LLM_BASE_URL": "https://other.test/v1"}
        assert load(tmp_path, environ=environ).llm_providers["default"].api_key is None
        toml = "[llm.providers.default]\nbase_url = 'https://other.test/v1'"
        assert (
            load(tmp_path, toml, {"OPENAI_API_KEY": "k2"}).llm_providers["default"].api_key is None
        )

    def test_the_file_names_more(self, tmp_path):
        toml = """
            [llm]
            default_provider = "local"
            [llm.providers.local]
            base_url = "http://localhost:11434/v1"
            models = ["llama3.2"]
            [llm.providers.my-groq]
            base_url = "https://api.groq.test/openai/v1"
            api_key = "in the file"
        """
        settings = load(tmp_path, toml, {"PENSTOCK_LLM_MY_GROQ_API_KEY": "in the environment"})
        assert settings.llm_default_provider == "local"
        assert settings.llm_providers["local"] == LlmProvider(
            "http://localhost:11434/v1", None, ("llama3.2",)
        )
        assert settings.llm_providers["my-groq"].api_key == "in the environment"
        assert sorted(settings.llm_providers) == ["default", "local", "my-groq"]

    def test_the_environment_overrides_the_default_one_of_the_file(self, tmp_path):
        toml = (
            "[llm.providers.default]\nbase_url = 'http://a.test/v1'\nmodels = ['m']\napi_key = 'k'"
        )
        settings = load(tmp_path, toml, {"PENSTOCK_LLM_BASE_URL": "http://b.test/v1"})
        assert settings.llm_providers["default"] == LlmProvider("http://b.test/v1", "k", ("m",))


def test_what_is_shown_has_no_password_and_no_key(tmp_path):
    environ = {
        "PENSTOCK_STORE": "rediss://:canary@h:6379/0",
        "PENSTOCK_DATABASE": "postgresql://u:canary@h/d?sslpassword=canary&x=1",
        "PENSTOCK_LLM_BASE_URL": "https://u:canary@h/v1",
        "PENSTOCK_LLM_API_KEY": "canary",
    }
    settings = load(tmp_path, environ=environ)
    described = settings.describe()
    assert "canary" not in repr(described) + repr(settings) + str(settings) + repr(
        settings.llm_providers["default"].api_key and ""
    )
    assert described["store"] == "rediss://:***@h:6379/0"
    assert described["database"] == "postgresql://u:***@h/d?sslpassword=***&x=1"
    assert described["llm_providers"] == {
        "default": {"base_url": "https://u:***@h/v1", "api_key": "***", "models": []}
    }
    assert described["port"] == 8000
    assert described["queues"] == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h/0", "redis://h/0"),
        ("redis://u:p@ss:w@h/0", "redis://u:***@h/0"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_only_the_password_of_a_url_is_hidden(url, shown):
    assert hide_password(url) == shown


class TestSecretRules:
    RULES = (
        '[secrets.Api_Token]\nhosts = ["api.example.com"]\nhandlers = ["http_request"]\n\n'
        "[secrets.B]\nworkflows = []"
    )

    def test_are_read_by_name_in_capitals(self, tmp_path):
        rules = load(tmp_path, self.RULES).secret_rules
        assert rules == {
            "API_TOKEN": SecretRule(hosts=("api.example.com",), handlers=("http_request",)),
            "B": SecretRule(workflows=()),
        }

    def test_are_described_by_name(self, tmp_path):
        assert load(tmp_path, self.RULES).describe()["secret_rules"] == {
            "API_TOKEN": {"hosts": ["api.example.com"], "handlers": ["http_request"]},
            "B": {"workflows": []},
        }

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "secrets = 'canary'",
                "DIR/penstock.toml: [secrets] must be a table of tables, one for each secret",
            ),
            (
                "[secrets]\nTOKEN = 'canary'",
                "DIR/penstock.toml: [secrets.TOKEN] must be a table with hosts, handlers",
            ),
            (
                "[secrets.TOKEN]\nhost = ['a']",
                "DIR/penstock.toml: [secrets.TOKEN]: there is no setting 'host'; did you",
            ),
            (
                "[secrets.TOKEN]\nhosts = [7]",
                "DIR/penstock.toml: [secrets.TOKEN]: hosts must be a list of texts",
            ),
        ],
    )
    def test_refuse_what_is_no_rule_and_quote_no_value(self, tmp_path, text, message):
        refused = refusal(tmp_path, text)
        assert refused.startswith(message)
        assert "canary" not in refused
