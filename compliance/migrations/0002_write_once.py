from django.db import migrations

from compliance.triggers import write_once


class Migration(migrations.Migration):
    dependencies = [("compliance", "0001_initial")]
    operations = [write_once("compliance_ledgerentry")]
