"""The rules that ``tools/judge_rules.py`` switches off are where it says."""

from pkgutil import resolve_name

from tools.judge_rules import RULES


def test_every_rule_that_is_switched_off_exists() -> None:
    for rule in RULES:
        resolve_name(rule.target if rule.target.startswith("pipesim.") else f"pipesim.prove.{rule.target}")
