"""The options of section [ringfence] in nova.conf."""

import functools

from oslo_config import cfg

from ringfence_nova.hook import Hook

GROUP = "ringfence"
CLOSED = "closed"
OPEN = "open"
_CHOICES = [
    (CLOSED, "requests that need Ringfence's answer are refused"),
    (OPEN, "requests that need Ringfence's answer go on as if it had allowed them"),
]

OPTIONS = [
    cfg.ListOpt(
        "urls",
        default=[],
        help="Addresses of Ringfence's scheduler hook, such as https://ringfence-1:8791. The "
        "address that answered last is asked first, the others when it gives no usable answer.",
    ),
    cfg.StrOpt("token", secret=True, help="The token for the hook. Prefer token_file."),
    cfg.StrOpt(
        "token_file",
        help="A file with the token for the hook, read anew for each question; overrides token.",
    ),
    cfg.StrOpt("cloud", default="default", help="Ringfence's name of this cloud."),
    cfg.FloatOpt(
        "timeout_s",
        default=2.0,
        min=0.1,
        max=60.0,
        help="Seconds that one address of the hook has for its whole answer.",
    ),
    cfg.StrOpt(
        "on_error",
        default=CLOSED,
        choices=_CHOICES,
        help="The behaviour when no address answers. Open means that servers can be "
        "evacuated from a host that still runs them.",
    ),
    cfg.StrOpt(
        "filter_on_error",
        choices=_CHOICES,
        help="The behaviour of the scheduler's filter alone; that of on_error unless set. "
        "Closed means that no server can be built, resized or moved while the hook is away.",
    ),
    cfg.StrOpt(
        "ca_file",
        help="PEM file: authorities for the hook's certificate, instead of the system's.",
    ),
]


def list_opts():
    """For oslo.config's generator of sample files."""
    return [(GROUP, OPTIONS)]


def settings(conf=cfg.CONF):
    """The section of a configuration, with defaults for missing options."""
    conf.register_opts(OPTIONS, group=GROUP)
    return conf[GROUP]


def hook_from(section):
    """A hook with the section's settings. Raises ValueError for invalid ones."""
    if not (section.token or section.token_file):
        raise ValueError("neither token nor token_file is set in section [ringfence]")
    return Hook(
        section.urls,
        functools.partial(_token, section.token, section.token_file),
        timeout_s=section.timeout_s,
        ca_file=section.ca_file,
    )


def gate_is_open_on_error(section):
    return section.on_error == OPEN


def filter_is_open_on_error(section):
    return (section.filter_on_error or section.on_error) == OPEN


def _token(token, token_file):
    if token_file:
        with open(token_file, encoding="utf-8", errors="replace") as file:
            token = file.read().strip()
    if not token or not token.isascii() or not token.isprintable():
        # The message does not say what is wrong, since that would reveal a part of the token.
        raise ValueError("it is empty or has characters that no token has")
    return token
