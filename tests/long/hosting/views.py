"""Each takes one id and tells which process took it, when, and whether a row has it."""

import os
import time

from django.db import transaction
from django.http import HttpRequest, JsonResponse

from django_hilo.generator import anext_id
from tests.apps.records.models import Order


def create(request: HttpRequest) -> JsonResponse:
    began = time.monotonic_ns()
    return _answer(Order.objects.create().pk, began)


@transaction.atomic
def create_in_atomic(request: HttpRequest) -> JsonResponse:
    began = time.monotonic_ns()
    return _answer(Order.objects.create().pk, began)


def roll_back(request: HttpRequest) -> JsonResponse:
    began = time.monotonic_ns()
    with transaction.atomic():
        order = Order.objects.create()
        transaction.set_rollback(True)
    return _answer(order.pk, began, kept=False)


@transaction.non_atomic_requests
async def acreate(request: HttpRequest) -> JsonResponse:
    began = time.monotonic_ns()
    return _answer((await Order.objects.acreate()).pk, began)


@transaction.non_atomic_requests
async def anext(request: HttpRequest) -> JsonResponse:
    began = time.monotonic_ns()
    order = Order(id=await anext_id(Order))
    await order.asave(force_insert=True)
    return _answer(order.pk, began)


@transaction.non_atomic_requests
def without_database(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"process": os.getpid()})


def _answer(key: str, began: int, *, kept: bool = True) -> JsonResponse:
    return JsonResponse(
        {
            **{"key": key, "kept": kept, "process": os.getpid()},
            **{"began": began, "ended": time.monotonic_ns()},
        }
    )
