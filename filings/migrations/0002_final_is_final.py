from django.db import migrations

from compliance.triggers import final_is_final


class Migration(migrations.Migration):
    dependencies = [("filings", "0001_initial")]
    operations = [
        final_is_final("filings_filing", "status", ("accepted", "rejected", "withdrawn"))
    ]
