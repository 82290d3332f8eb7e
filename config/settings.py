"""All settings. The only module that reads the environment; the README lists every name."""

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse_lazy
from environs import Env, validate

env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = "0.1.0"

DEBUG = env.bool("DEBUG", False)
DATA_DIR = Path(env.str("DATA_DIR", str(BASE_DIR / "var")))


def kept_secret(name: str, length: int) -> str:
    """A secret made once per data folder, so that one command is enough to start."""
    path = DATA_DIR / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(length))
    return path.read_text().strip()


SECRET_KEY = env.str("SECRET_KEY", "") or kept_secret("secret_key", 64)
# Fernet keys, newest first; older ones still decrypt. Never derived from SECRET_KEY.
FIELD_KEYS: list[str] = env.list("FIELD_KEYS", [])
FIELD_KEY_FILE = DATA_DIR / "field_key"
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "unfold.contrib.simple_history",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "csp",
    "django_filters",
    "django_q",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "rest_framework",
    "simple_history",
    "compliance",
    "portals",
    "filings",
    "grants",
    "config",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# --- Database ---------------------------------------------------------------------------------
DATABASES: dict[str, dict[str, Any]] = {
    "default": env.dj_db_url("DATABASE_URL", f"sqlite:///{DATA_DIR / 'goodstanding.sqlite3'}")
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        # IMMEDIATE: two writers queue instead of failing half-way.
        "transaction_mode": "IMMEDIATE",
        "timeout": 30,
        # FULL: an armed attempt must survive a power cut, or we would send without a record.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = env.int("CONN_MAX_AGE", 60)
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- People -----------------------------------------------------------------------------------
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = reverse_lazy("admin:login")
LOGIN_REDIRECT_URL = reverse_lazy("admin:index")
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

# --- Transport security -----------------------------------------------------------------------
HTTPS = env.bool("HTTPS", not DEBUG)
SECURE_SSL_REDIRECT = HTTPS
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^livez$", r"^readyz$"]
if env.bool("BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        # Alpine, which the admin theme is built on, compiles its expressions.
        "script-src": [SELF, UNSAFE_EVAL],
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
    }
}

# --- Files ------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", str(BASE_DIR / "staticfiles")))
STATICFILES_DIRS = [BASE_DIR / "templates" / "static"]
MEDIA_ROOT = Path(env.str("MEDIA_ROOT", str(DATA_DIR / "files")))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = DEBUG

# --- History ----------------------------------------------------------------------------------
SIMPLE_HISTORY_REVERT_DISABLED = True
SIMPLE_HISTORY_DATE_INDEX = "Composite"

# --- Ledger -----------------------------------------------------------------------------------
# Names this installation in every ledger entry, so that no other's can be passed off as its own.
LEDGER_ORIGIN = env.str("LEDGER_ORIGIN", "goodstanding")

# --- Deadlines --------------------------------------------------------------------------------
# Our own target is this many working days before the due date.
DEADLINE_LEAD_DAYS = env.int("DEADLINE_LEAD_DAYS", 10, validate=validate.Range(min=0, max=250))

# Owner, backup, officers and everyone are told when so many days or fewer are left.
ESCALATION_DAYS: list[int] = env.list("ESCALATION_DAYS", [30, 14, 7, 0], subcast=int)

# --- Mail -------------------------------------------------------------------------------------
_mail = env.dj_email_url("EMAIL_URL", "console:" if DEBUG else "smtp://localhost:25")
if "EMAIL_BACKEND" not in _mail:
    raise ImproperlyConfigured(
        "EMAIL_URL: we do not know how mail is sent that way. Write it like "
        "submission://user:password@mail.example.com, or smtp://localhost:25."
    )
EMAIL_BACKEND = _mail["EMAIL_BACKEND"]
EMAIL_HOST, EMAIL_PORT = _mail["EMAIL_HOST"], _mail["EMAIL_PORT"]
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail["EMAIL_HOST_USER"], _mail["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail["EMAIL_USE_TLS"], _mail["EMAIL_USE_SSL"]
EMAIL_FILE_PATH = _mail["EMAIL_FILE_PATH"]
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", "Goodstanding <goodstanding@localhost>")
# Where people find this site, for links in mail; empty = no links.
SITE_URL = env.str("SITE_URL", "").rstrip("/")

# --- Portals and lanes ------------------------------------------------------------------------
# Where every portal answers in a rehearsal, as {PORTALS_BASE_URL}/{slug}; empty = the real ones.
PORTALS_BASE_URL = env.str("PORTALS_BASE_URL", "")
# Extra folders of portal cards and of law packs, scanned like our own.
PORTALS_DIR = env.str("PORTALS_DIR", "")
PACKS_DIR = env.str("PACKS_DIR", "")
INTENT_HANDLERS = {
    "filing.submit": "filings.handlers.FilingSubmit",
    "standing.check": "filings.handlers.StandingCheck",
    "grant.submit": "grants.handlers.GrantSubmit",
}
# A lane belongs to its owner for this long after the last renewal.
LANE_LEASE_SECONDS = env.float("LANE_LEASE_SECONDS", 60.0)
# One wake-up works for at most this long, then gives its lanes back.
LANE_SLICE_SECONDS = env.float("LANE_SLICE_SECONDS", 20.0)
# An armed request that has not left after this long is not sent any more.
SEND_WITHIN_SECONDS = env.float("SEND_WITHIN_SECONDS", 5.0)
# How long after its deadline a request may still reach a portal; look-ups wait for it.
WIRE_SETTLE_SECONDS = env.float("WIRE_SETTLE_SECONDS", 15.0)
URGENT_WITHIN_HOURS = env.float("URGENT_WITHIN_HOURS", 72.0)
# For chaos tests: the named point at which the program kills itself.
CRASH_AT = env.str("CRASH_AT", "")

Q_CLUSTER: dict[str, Any] = {
    "name": "goodstanding",
    "orm": "default",
    "workers": env.int("Q_WORKERS", 2),
    # A task is a wake-up; retrying is our decision, recorded in our tables.
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": 250,
    "timeout": int(LANE_SLICE_SECONDS * 3 + 60),
    "retry": int(LANE_SLICE_SECONDS * 4 + 120),
    "queue_limit": 4,
    "bulk": 1,
    "poll": 0.2,
    "catch_up": False,
}
if env.str("REDIS_URL", ""):
    Q_CLUSTER["redis"] = env.str("REDIS_URL")
    del Q_CLUSTER["orm"]

# --- API --------------------------------------------------------------------------------------
KNOX_TOKEN_MODEL = "compliance.ApiToken"  # noqa: S105 - a model's name, not a secret
REST_KNOX = {"TOKEN_TTL": timedelta(days=90), "TOKEN_PREFIX": "gst_", "AUTO_REFRESH": False}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "compliance.api_auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["compliance.permissions.Scoped"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["compliance.parsers.BoundedJSONParser"],
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS tells nothing; /api/schema/ does
    "DEFAULT_PAGINATION_CLASS": "compliance.pagination.CappedPagination",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "config.errors.problem",
    "PAGE_SIZE": 50,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Goodstanding",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": "What each entity owes, what was filed, and the proof.",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENFORCE_NON_BLANK_FIELDS": True,
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    # A grant submission has the statuses of a filing, so they share the name.
    "ENUM_NAME_OVERRIDES": {
        "DeadlineStatus": "compliance.models.Deadline.Status",
        "FilingStatus": "filings.models.Filing.Status",
    },
    # Swagger UI would else ask a server elsewhere whether the document is valid.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None},
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.openapi.speak_31",
        "config.openapi.describe_problems",
    ],
}

# --- Logs -------------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", "WARNING")},
    # httpx logs every URL at INFO, httpcore every header at DEBUG; either may carry what a log
    # must not.
    "loggers": {
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "django_q": {"level": env.str("LOG_LEVEL", "WARNING")},
    },
}

from config.navigation import UNFOLD  # noqa: E402, F401 - reads nothing above; kept on its own page
