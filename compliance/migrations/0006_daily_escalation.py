from datetime import timedelta

from django.db import migrations
from django.utils import timezone


def add_schedule(apps, editor):
    """Every morning at six, UTC, people are told of the deadlines that come near."""
    six = timezone.now().replace(hour=6, minute=0, second=0, microsecond=0)
    apps.get_model("django_q", "Schedule").objects.get_or_create(
        name="tell of deadlines",
        defaults={
            "func": "compliance.tasks.tell_of_deadlines",
            "schedule_type": "D",
            "repeats": -1,
            "next_run": six + timedelta(days=1),
        },
    )


def remove_schedule(apps, editor):
    apps.get_model("django_q", "Schedule").objects.filter(name="tell of deadlines").delete()


class Migration(migrations.Migration):
    dependencies = [("compliance", "0005_notices"), ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more")]
    operations = [migrations.RunPython(add_schedule, remove_schedule)]
