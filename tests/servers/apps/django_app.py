"""A site in one file."""

import os
import sys

import django.conf
import django.core.management
from django.http import HttpResponse
from django.urls import path


def answer(request):
    text = "from " + request.META["SERVER_PORT"]
    return HttpResponse(text, headers={"Content-Length": len(text)})  # so that the connection is kept


urlpatterns = [path("", answer)]

if __name__ == "__main__":
    django.conf.settings.configure(
        DEBUG=True, SECRET_KEY="none", ROOT_URLCONF="__main__", ALLOWED_HOSTS=["*"], USE_TZ=True)
    django.core.management.execute_from_command_line(sys.argv)
