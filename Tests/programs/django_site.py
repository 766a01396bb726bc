"""A Django site with its admin: django_site.py PORT DIRECTORY. Its user is `ada` with the password `low water`."""

import sys

import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    DEBUG=True,
    SECRET_KEY="not a secret",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF="__main__",
    STATIC_URL="static/",
    USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[2] + "/site.sqlite"}},
    INSTALLED_APPS=[f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
)
django.setup()

from django.contrib import admin  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.urls import path  # noqa: E402

urlpatterns = [path("admin/", admin.site.urls)]

if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    if not User.objects.exists():
        User.objects.create_superuser("ada", password="low water")
    call_command("runserver", f"127.0.0.1:{sys.argv[1]}", use_reloader=False)
