import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

/** Speaks as mixing.py says; a subclass draws the ids, from the database at JDBC_URL. */
abstract class Draw {
    static final String URL = System.getenv("JDBC_URL");

    abstract void open(String[] words) throws Exception;

    abstract String create() throws Exception;

    abstract String drop() throws Exception;

    abstract Object id() throws Exception;

    void answerAll() throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // EclipseLink's log is no answer
        BufferedReader tasks = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = tasks.readLine()) != null; ) {
            answers.println(answer(line.split(" ")));
        }
    }

    private String answer(String[] words) {
        try {
            switch (words[0]) {
                case "open":
                    open(words);
                    return "opened";
                case "create":
                    return create();
                case "drop":
                    return drop();
                default:
                    return draw(
                        Integer.parseInt(words[1]), Path.of(words[2]),
                        Double.parseDouble(words[3]), Double.parseDouble(words[4]));
            }
        } catch (Exception error) {
            error.printStackTrace();
            return "error " + error.toString().replace('\n', ' ');
        }
    }

    private String draw(int count, Path file, double start, double seconds) throws Exception {
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < count; i++) {
            long early = (long) (1e6 * (start + i * seconds / count)) - now();
            if (early > 0) {
                Thread.sleep(early / 1000, (int) (early % 1000) * 1000);
            }
            Object id = id();
            lines.append(now()).append(' ').append(id).append('\n');
        }
        Files.writeString(file, lines);
        return "drawn";
    }

    private static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
