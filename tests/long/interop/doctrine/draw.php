<?php
/* Takes ids from EntityManager::persist() of Doctrine ORM; speaks as mixing.py says. */

require 'Doctrine/ORM/autoload.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Doctrine\ORM\Tools\SchemaTool;

#[ORM\Entity, ORM\Table('peer_orders')]
class Order
{
    #[ORM\Id, ORM\Column(type: 'integer'), ORM\GeneratedValue(strategy: 'SEQUENCE')]
    #[ORM\SequenceGenerator(sequenceName: 'peer_sequence', allocationSize: 10)]
    public ?int $id = null;
}

function manager(): EntityManager
{
    $configuration = new Configuration();
    $configuration->setMetadataDriverImpl(new AttributeDriver([__DIR__]));
    $configuration->setProxyDir(sys_get_temp_dir()); // none is written: no relations
    $configuration->setProxyNamespace('Proxies');
    if (method_exists($configuration, 'enableNativeLazyObjects')) { // ORM 3
        $configuration->enableNativeLazyObjects(true);
    }
    $connection = DriverManager::getConnection([
        'driver' => 'pdo_pgsql',
        'host' => getenv('PGHOST'),
        'port' => getenv('PGPORT'),
        'user' => getenv('PGUSER'),
        'password' => getenv('PGPASSWORD'),
        'dbname' => getenv('PGDATABASE'),
    ]);
    return new EntityManager($connection, $configuration);
}

function draw(EntityManager $orders, int $count, string $file, float $start, float $seconds): string
{
    $lines = '';
    for ($i = 0; $i < $count; $i++) {
        $early = $start + $i * $seconds / $count - microtime(true);
        if ($early > 0) {
            usleep((int) ($early * 1e6));
        }
        $orders->beginTransaction();
        $order = new Order();
        $orders->persist($order);
        $lines .= sprintf("%d %d\n", microtime(true) * 1e6, $order->id);
        $orders->clear(); // without the row: only its id is wanted
        $orders->getConnection()->rollBack();
    }
    file_put_contents($file, $lines);
    return 'drawn';
}

$orders = manager();
$schema = new SchemaTool($orders);
$classes = [$orders->getClassMetadata(Order::class)];
while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', trim($line));
    try {
        $answer = match ($words[0]) {
            // ORM 3 removed it.
            'open' => method_exists(EntityManager::class, 'create') ? 'ORM 2' : 'ORM 3',
            'create' => implode(';', $schema->getCreateSchemaSql($classes)),
            'drop' => implode(';', $schema->getDropSchemaSQL($classes)),
            'draw' => draw($orders, (int) $words[1], $words[2], (float) $words[3], (float) $words[4]),
        };
    } catch (Throwable $error) {
        fwrite(STDERR, (string) $error);
        $answer = 'error ' . strtr($error->getMessage(), "\n", ' ');
    }
    echo $answer, "\n";
}
