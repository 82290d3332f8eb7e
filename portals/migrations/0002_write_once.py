from django.db import migrations

from compliance.triggers import final_is_final, write_once


class Migration(migrations.Migration):
    dependencies = [("portals", "0001_initial")]
    operations = [
        write_once("portals_intentpayload"),
        write_once("portals_installationkey"),
        final_is_final("portals_intent", "state", ("accepted", "rejected", "withdrawn")),
    ]
