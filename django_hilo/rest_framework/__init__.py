"""Endpoints for Django REST framework: ``include("django_hilo.rest_framework.urls")``.

Nothing else of the package imports this one; it needs ``django-hilo[drf]``.
"""
