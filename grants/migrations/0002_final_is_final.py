from django.db import migrations

from compliance.triggers import final_is_final


class Migration(migrations.Migration):
    dependencies = [("grants", "0001_initial")]
    operations = [
        final_is_final("grants_grantsubmission", "status", ("accepted", "rejected", "withdrawn"))
    ]
