import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.Transaction;
import org.hibernate.cfg.Configuration;
import org.hibernate.dialect.PostgreSQLDialect;

/** Takes ids from Hibernate's Session.save(); speaks as mixing.py says. */
public class Draw {
    // An entity without a Java class, so that its generator can be chosen at run time.
    static final String MAPPING =
        "<!DOCTYPE hibernate-mapping PUBLIC '-//Hibernate/Hibernate Mapping DTD 3.0//EN'"
            + " 'http://www.hibernate.org/dtd/hibernate-mapping-3.0.dtd'>"
            + "<hibernate-mapping><class entity-name='Order' table='peer_orders'>"
            + "<id name='id' type='long'><generator class='%s'>%s</generator></id>"
            + "</class></hibernate-mapping>";

    static Configuration configuration;
    static SessionFactory factory;

    public static void main(String[] none) throws Exception {
        BufferedReader tasks = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = tasks.readLine()) != null; ) {
            System.out.println(answer(line.split(" ")));
        }
    }

    static String answer(String[] words) {
        try {
            switch (words[0]) {
                case "open":
                    return open(words);
                case "create":
                    return String.join(";", configuration.generateSchemaCreationScript(dialect()));
                case "drop":
                    return String.join(";", configuration.generateDropSchemaScript(dialect()));
                default:
                    return draw(
                        Integer.parseInt(words[1]), Path.of(words[2]),
                        Double.parseDouble(words[3]), Double.parseDouble(words[4]));
            }
        } catch (Exception error) {
            error.printStackTrace();
            return "error " + error;
        }
    }

    static PostgreSQLDialect dialect() {
        return new PostgreSQLDialect();
    }

    static String open(String[] words) {
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
            .setProperty("hibernate.connection.url", String.format(
                "jdbc:postgresql://%s:%s/%s?options=%s",
                System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE"),
                System.getenv("PGOPTIONS").replace(" ", "%20")))
            .setProperty("hibernate.connection.username", System.getenv("PGUSER"))
            .setProperty("hibernate.connection.password", System.getenv("PGPASSWORD"));
        factory = configuration.buildSessionFactory();
        return "opened";
    }

    static String draw(int count, Path file, double start, double seconds) throws Exception {
        StringBuilder lines = new StringBuilder();
        Session session = factory.openSession();
        for (int i = 0; i < count; i++) {
            long early = (long) (1e6 * (start + i * seconds / count)) - now();
            if (early > 0) {
                Thread.sleep(early / 1000, (int) (early % 1000) * 1000);
            }
            Transaction transaction = session.beginTransaction();
            Object id = session.save("Order", new HashMap<String, Object>());
            lines.append(now()).append(' ').append(id).append('\n');
            session.clear(); // without the row: only its id is wanted
            transaction.rollback();
        }
        session.close();
        Files.writeString(file, lines);
        return "drawn";
    }

    static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
