from django.db import migrations
from django.utils import timezone


def add_sweeper(apps, editor):
    """A standing schedule that wakes the lanes every minute, whatever other wake-up got lost."""
    apps.get_model("django_q", "Schedule").objects.get_or_create(
        name="sweep lanes",
        defaults={
            "func": "portals.tasks.wake_lanes",
            "schedule_type": "I",
            "minutes": 1,
            "repeats": -1,
            "next_run": timezone.now(),
        },
    )


def remove_sweeper(apps, editor):
    apps.get_model("django_q", "Schedule").objects.filter(name="sweep lanes").delete()


class Migration(migrations.Migration):
    dependencies = [("portals", "0002_write_once"), ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more")]
    operations = [migrations.RunPython(add_sweeper, remove_sweeper)]
