"""Groups of commands: sections in their help, and hints for mistyped names."""

from __future__ import annotations

import click

from penstock.spelling import nearest_name

NEAR = 0.5


class CommandGroup(click.Group):
    """A group that names the command which a mistyped one was probably meant to be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_option = name.startswith("-")
        if is_option or ctx.resilient_parsing or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)

        nearest = nearest_name(name, self.list_commands(ctx), cutoff=NEAR)
        hint = f"; did you mean '{nearest}'?" if nearest else ""
        raise click.UsageError(f"there is no command '{name}'{hint}", ctx=ctx)


def no_such_option(error: click.NoSuchOption) -> str:
    """The message about a mistyped option, with the nearest one that the command has."""
    message = f"there is no option '{error.option_name}'"
    if error.ctx is None:
        return message
    names: list[str] = []
    for parameter in error.ctx.command.get_params(error.ctx):
        if not getattr(parameter, "hidden", False):
            names += [name for name in parameter.opts if name.startswith("--")]
    nearest = nearest_name(error.option_name, names, cutoff=NEAR)
    return f"{message}; did you mean '{nearest}'?" if nearest else message
