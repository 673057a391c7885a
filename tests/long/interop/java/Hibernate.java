import java.util.HashMap;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.Transaction;
import org.hibernate.cfg.Configuration;
import org.hibernate.dialect.PostgreSQLDialect;

/** Takes ids from Hibernate's Session.save(). */
public class Hibernate extends Draw {
    // An entity without a Java class, so that its generator can be chosen at run time.
    static final String MAPPING =
        "<!DOCTYPE hibernate-mapping PUBLIC '-//Hibernate/Hibernate Mapping DTD 3.0//EN'"
            + " 'http://www.hibernate.org/dtd/hibernate-mapping-3.0.dtd'>"
            + "<hibernate-mapping><class entity-name='Order' table='peer_orders'>"
            + "<id name='id' type='long'><generator class='%s'>%s</generator></id>"
            + "</class></hibernate-mapping>";

    Configuration configuration;
    SessionFactory factory;

    public static void main(String[] none) throws Exception {
        new Hibernate().answerAll();
    }

    @Override
    void open(String[] words) {
        StringBuilder parameters = new StringBuilder();
        for (int i = 2; i < words.length; i++) {
            String[] pair = words[i].split("=");
            parameters.append(String.format("<param name='%s'>%s</param>", pair[0], pair[1]));
        }
        if (factory != null) {
            factory.close();
        }
        configuration = new Configuration()
            .addXML(String.format(MAPPING, words[1], parameters))
            .setProperty("hibernate.dialect", PostgreSQLDialect.class.getName())
            .setProperty("hibernate.connection.url", URL);
        factory = configuration.buildSessionFactory();
    }

    @Override
    String create() {
        return String.join(
            ";", configuration.generateSchemaCreationScript(new PostgreSQLDialect()));
    }

    @Override
    String drop() {
        return String.join(";", configuration.generateDropSchemaScript(new PostgreSQLDialect()));
    }

    @Override
    Object id() {
        Session session = factory.openSession();
        Transaction transaction = session.beginTransaction();
        Object id = session.save("Order", new HashMap<String, Object>());
        session.clear(); // without the row: only its id is wanted
        transaction.rollback();
        session.close();
        return id;
    }
}
