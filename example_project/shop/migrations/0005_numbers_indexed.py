from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("shop", "0004_gapless_invoices"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="customer",
            index=models.Index(models.F("id__number"), name="shop_customers_by_number"),
        ),
        migrations.AddIndex(
            model_name="invoice",
            index=models.Index(models.F("id__number"), name="shop_invoices_by_number"),
        ),
        migrations.AddIndex(
            model_name="order",
            index=models.Index(models.F("id__number"), name="shop_orders_by_number"),
        ),
        migrations.AddIndex(
            model_name="orderline",
            index=models.Index(models.F("id__number"), name="shop_lines_by_number"),
        ),
        migrations.AddIndex(
            model_name="product",
            index=models.Index(models.F("id__number"), name="shop_products_by_number"),
        ),
    ]
