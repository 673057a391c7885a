import java.io.StringWriter;
import java.util.HashMap;
import java.util.Map;
import javax.persistence.Entity;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.Persistence;
import javax.persistence.SequenceGenerator;
import javax.persistence.Table;
import javax.persistence.TableGenerator;

/** Takes ids from EntityManager.persist() of EclipseLink. */
public class EclipseLink extends Draw {
    @Entity
    @Table(name = "peer_orders")
    public static class BySequence {
        @Id
        @SequenceGenerator(name = "orders", sequenceName = "orders_seq", allocationSize = 50)
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "orders")
        public long id;
    }

    @Entity
    @Table(name = "peer_orders")
    public static class ByTable {
        @Id
        @TableGenerator(
            name = "orders", table = "ids", pkColumnName = "name", valueColumnName = "value",
            pkColumnValue = "orders", allocationSize = 50)
        @GeneratedValue(strategy = GenerationType.TABLE, generator = "orders")
        public long id;
    }

    StringWriter create;
    StringWriter drop;
    EntityManagerFactory factory;
    Class<?> entity;

    public static void main(String[] none) throws Exception {
        new EclipseLink().answerAll();
    }

    @Override
    void open(String[] words) {
        if (factory != null) {
            factory.close();
        }
        Map<String, Object> properties = new HashMap<>();
        properties.put("javax.persistence.jdbc.url", URL);
        if (URL.startsWith("jdbc:mariadb")) {
            // It knows no MariaDB, and is to be told twice: for sessions, and for scripts.
            properties.put("eclipselink.target-database", "MySQL");
            properties.put("javax.persistence.database-product-name", "MySQL");
        }
        for (int i = 2; i < words.length; i++) {
            String[] pair = words[i].split("=");
            properties.put(pair[0], pair[1]);
        }
        Map<String, Object> scripts = new HashMap<>(properties);
        String prefix = "javax.persistence.schema-generation.scripts.";
        scripts.put(prefix + "action", "drop-and-create");
        scripts.put(prefix + "create-target", create = new StringWriter());
        scripts.put(prefix + "drop-target", drop = new StringWriter());
        Persistence.generateSchema(words[1], scripts);
        factory = Persistence.createEntityManagerFactory(words[1], properties);
        entity = factory.getMetamodel().getEntities().iterator().next().getJavaType();
    }

    @Override
    String create() {
        return create.toString().strip().replace('\n', ';');
    }

    @Override
    String drop() {
        // Its script deletes the row of a counter, and leaves the table.
        return (drop + "DROP TABLE IF EXISTS ids").replace('\n', ';');
    }

    @Override
    Object id() throws Exception {
        EntityManager manager = factory.createEntityManager();
        manager.getTransaction().begin();
        Object order = entity.getConstructor().newInstance();
        manager.persist(order);
        manager.getTransaction().rollback(); // without the row: only its id is wanted
        manager.close();
        return factory.getPersistenceUnitUtil().getIdentifier(order);
    }
}
