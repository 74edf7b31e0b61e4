import json

import pytest

from penstock.config import SecretRule, Settings
from penstock.errors import Terminal
from penstock.worker.redaction import redact
from penstock.worker.secrets import SecretInUse, Secrets

CANARY = "canary-5f2a"


def refusal(secrets: Secrets, name: str) -> str:
    with pytest.raises(Terminal) as raised:
        secrets.get(name)
    assert raised.value.category == "secret"
    assert CANARY not in str(raised.value)
    return str(raised.value)


class TestGet:
    def test_reads_the_environment(self):
        secrets = Secrets(
            Settings(), {"PENSTOCK_SECRET_API_TOKEN": "abc", "PENSTOCK_SECRET_lower": "def"}
        )
        assert (secrets.get("API_TOKEN"), secrets.get("api_token"), secrets.get("lower")) == (
            "abc",
            "abc",
            "def",
        )

    def test_prefers_the_environment_to_the_file(self, tmp_path):
        (tmp_path / "TOKEN").write_text("from the file")
        secrets = Secrets(
            Settings(secrets_file=str(tmp_path)), {"PENSTOCK_SECRET_TOKEN": "from the environment"}
        )
        assert secrets.get("TOKEN") == "from the environment"

    @pytest.mark.parametrize(
        ("file", "text"),
        [
            ("secrets", "# a comment\nOTHER=1\n\nexport TOKEN = canary-5f2a\n"),
            ("secrets.env", "TOKEN='canary-5f2a'"),
            ("secrets.env", 'TOKEN="canary-5f2a"\r\n'),
            ("secrets.toml", 'TOKEN = "canary-5f2a"'),
            ("secrets.json", '{"TOKEN": "canary-5f2a"}'),
        ],
    )
    def test_reads_a_file_of_any_usual_format(self, tmp_path, file, text):
        (tmp_path / file).write_text(text)
        assert Secrets(Settings(secrets_file=str(tmp_path / file)), {}).get("TOKEN") == CANARY

    def test_keeps_what_follows_the_first_equals_sign(self, tmp_path):
        (tmp_path / "secrets").write_text("TOKEN=a=b#c==")
        assert (
            Secrets(Settings(secrets_file=str(tmp_path / "secrets")), {}).get("TOKEN") == "a=b#c=="
        )

    @pytest.mark.parametrize(
        ("text", "value"),
        [("abc\n", "abc"), ("abc\r\n", "abc"), ("a\nb\n\n", "a\nb\n"), ("a", "a")],
    )
    def test_reads_a_directory_without_the_last_newline(self, tmp_path, text, value):
        (tmp_path / "db.password").write_bytes(text.encode())
        assert Secrets(Settings(secrets_file=str(tmp_path)), {}).get("db.password") == value

    def test_sees_a_rotated_secret(self, tmp_path):
        secrets = Secrets(Settings(secrets_file=str(tmp_path / "secrets")), {})
        for value in ("one", "two"):
            (tmp_path / "secrets").write_text(f"TOKEN={value}")
            assert secrets.get("TOKEN") == value

    def test_names_both_places_for_a_secret_that_is_nowhere(self, tmp_path):
        assert refusal(Secrets(Settings(), {}), "TOKEN") == (
            "there is no secret 'TOKEN': set PENSTOCK_SECRET_TOKEN in the worker's environment, "
            "or point PENSTOCK_SECRETS_FILE to a file that has it"
        )
        path = tmp_path / "secrets"
        path.write_text(f"OTHER={CANARY}")
        assert refusal(Secrets(Settings(secrets_file=str(path)), {}), "TOKEN") == (
            "there is no secret 'TOKEN': set PENSTOCK_SECRET_TOKEN in the worker's environment, "
            f"or put it into {path} (PENSTOCK_SECRETS_FILE)"
        )
        refusal(
            Secrets(Settings(secrets_file=str(tmp_path)), {"PENSTOCK_SECRET_TOKEN": ""}), "TOKEN"
        )

    @pytest.mark.parametrize(
        "name", ["../outside", "/etc/passwd", "..", ".hidden", "a/b", "a\\b", "", "a b", "x" * 200]
    )
    def test_refuses_names_that_could_leave_the_directory(self, tmp_path, name):
        inside = tmp_path / "inside"
        inside.mkdir()
        (tmp_path / "outside").write_text(CANARY)
        text = refusal(Secrets(Settings(secrets_file=str(inside)), {}), name)
        assert text.endswith(
            "can't be the name of a secret: letters, digits, '_', '-' and '.' are allowed"
        )

    @pytest.mark.parametrize(
        ("file", "text", "reason"),
        [
            ("secrets.toml", f"TOKEN = {CANARY}", "can't be read: TOMLDecodeError"),
            ("secrets.json", f'{{"TOKEN": "{CANARY}"', "can't be read: JSONDecodeError"),
            ("secrets.json", f'{{"TOKEN": ["{CANARY}"]}}', "isn't text: put it in quotes"),
            ("secrets.toml", "TOKEN = 12345", "isn't text: put it in quotes"),
            (None, "", "can't be read: No such file or directory"),
        ],
    )
    def test_says_why_a_file_cannot_be_used_and_quotes_nothing_of_it(
        self, tmp_path, file, text, reason
    ):
        if file:
            (tmp_path / file).write_text(text)
        path = tmp_path / (file or "missing")
        assert refusal(Secrets(Settings(secrets_file=str(path)), {}), "TOKEN").endswith(reason)


class TestUse:
    ENVIRON = {"PENSTOCK_SECRET_TOKEN": CANARY}  # noqa: RUF012 -- never changed

    def use(
        self, rule: SecretRule, name: str = "TOKEN", handler: str = "echo", workflow: str = "flow"
    ) -> SecretInUse:
        return Secrets(Settings(secret_rules={"TOKEN": rule}), self.ENVIRON).use(
            name, handler, workflow
        )

    def refused(self, rule: SecretRule, **request: str) -> str:
        with pytest.raises(Terminal) as raised:
            self.use(rule, **request)
        assert raised.value.category == "secret"
        assert CANARY not in str(raised.value)
        return str(raised.value)

    def test_without_a_rule_anybody_may(self):
        secret = Secrets(Settings(), self.ENVIRON).use("TOKEN", "echo", "flow")
        assert (secret.value, secret.hosts) == (CANARY, None)

    def test_only_the_named_workflows_may(self):
        rule = SecretRule(workflows=("payroll",))
        assert self.use(rule, workflow="payroll").value == CANARY
        assert self.refused(rule).startswith("the workflow 'flow' may not use the secret 'TOKEN'")

    def test_only_the_named_handlers_may_under_any_name_of_theirs(self):
        rule = SecretRule(handlers=("http_request", "mine"))
        assert self.use(rule, handler="mine").value == CANARY
        assert self.use(rule, handler="call_external_service").value == CANARY
        assert self.refused(rule).startswith("the handler 'echo' may not use the secret 'TOKEN'")

    def test_with_hosts_alone_only_handlers_that_look_at_them_may(self):
        rule = SecretRule(hosts=("api.example.com",))
        assert self.use(rule, handler="call_external_service").hosts == ("api.example.com",)
        assert self.use(rule, handler="llm_service").hosts == ("api.example.com",)
        self.refused(rule)
        assert self.use(SecretRule(hosts=("a.test",), handlers=("echo",))).value == CANARY

    def test_another_spelling_of_the_name_is_no_way_around(self):
        self.refused(SecretRule(workflows=("payroll",)), name="token")


class TestRedact:
    def test_hides_values_in_texts_and_keys_at_any_depth(self):
        value = {"a": f"Bearer {CANARY}", f"x{CANARY}": [1, None, True, {"b": [CANARY, "plain"]}]}
        expected = {"a": "Bearer ***", "x***": [1, None, True, {"b": ["***", "plain"]}]}
        assert redact(value, [CANARY]) == expected
        assert redact(CANARY * 2, {CANARY}) == "******"

    def test_leaves_the_given_value_as_it_was(self):
        value = {"a": [CANARY], CANARY: {"b": CANARY}}
        before = json.dumps(value)
        redact(value, [CANARY])
        assert json.dumps(value) == before

    def test_leaves_short_values_alone(self):
        assert redact({"a": "1 of 123"}, ["1", "123", ""]) == {"a": "1 of 123"}

    def test_hides_a_secret_that_contains_another_as_a_whole(self):
        assert redact("abcd abcdefgh", ["abcd", "abcdefgh"]) == "*** ***"

    @pytest.mark.parametrize(
        "text",
        [
            "https://a.test/?key=p%40ss+w%2Frd",
            "https://a.test/?key=p%40ss+w/rd",
            "https://a.test/p%40ss%20w/rd",
            "https://a.test/p%40ss%20w%2Frd",
        ],
    )
    def test_hides_a_secret_inside_a_url(self, text):
        assert "ss" not in redact(text, ["p@ss w/rd"])

    def test_hides_a_secret_inside_json_in_a_text(self):
        secret = 'line one\nline "two"'
        assert redact(json.dumps({"a": secret}), [secret]) == '{"a": "***"}'

    def test_takes_signs_of_regular_expressions_for_what_they_are(self):
        assert redact("a.c+ abc", ["a.c+"]) == "*** abc"

    def test_does_not_recurse(self):
        value: object = CANARY
        for _ in range(100_000):
            value = [value]
        cleaned = redact(value, [CANARY])
        while isinstance(cleaned, list):
            cleaned = cleaned[0]
        assert cleaned == "***"
