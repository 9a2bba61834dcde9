// The recognizer in pure Java: the design "pool" of crates/lab/src/recognizer, for a comparison with native code.
//
// A fixed pool of threads compares each drawing, 16 longs, with all samples, and keeps the 15 nearest. Files are little
// endian. The samples: for each its id (64 bits) and its 128 bytes. The requests: for each when it is due, in nanoseconds
// since the start (64 bits), and its 128 bytes. The answers: for each request how long it took, in nanoseconds (64
// bits), when its answer was there, in nanoseconds since the start (64 bits), and for each of the nearest samples the
// distance (32 bits) and the id (64 bits).

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

public final class Recognizer {
    static final int LONGS = 16;
    static final int NEIGHBORS = 15;
    // The compiler of the JVM works until batches of requests get no faster.
    static final int BATCH = 200;
    static final int SLOWER_BATCHES = 3;
    static final int BATCHES_MAX = 200;

    final long[] ids;
    final long[] samples;
    final long[] due;
    final long[] queries;
    final long[] took;
    final long[] done;
    final int[][] distances;
    final long[][] nearest;
    final CountDownLatch left;
    final ExecutorService pool;
    long start;

    // Threads, number of clients or 0 if requests are due at their times, files of samples, requests and answers.
    public static void main(String[] words) throws Exception {
        // Otherwise nobody would count the request, and this program would wait for ever.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        int threads = Integer.parseInt(words[0]);
        Recognizer recognizer = new Recognizer(threads, words[2], words[3]);
        recognizer.warmUp();
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        recognizer.run(Integer.parseInt(words[1]));
        long wall = System.nanoTime() - recognizer.start;
        System.out.println(wall + " " + (system.getProcessCpuTime() - cpu));
        recognizer.write(words[4]);
        recognizer.pool.shutdown();
    }

    Recognizer(int threads, String samplesFile, String requestsFile) throws IOException {
        ByteBuffer bytes = read(samplesFile);
        ids = new long[bytes.remaining() / (8 + 8 * LONGS)];
        samples = new long[ids.length * LONGS];
        decode(bytes, ids, samples);
        bytes = read(requestsFile);
        due = new long[bytes.remaining() / (8 + 8 * LONGS)];
        queries = new long[due.length * LONGS];
        decode(bytes, due, queries);
        took = new long[due.length];
        done = new long[due.length];
        distances = new int[due.length][];
        nearest = new long[due.length][];
        left = new CountDownLatch(due.length);
        pool = Executors.newFixedThreadPool(threads);
    }

    static ByteBuffer read(String file) throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(Path.of(file))).order(ByteOrder.LITTLE_ENDIAN);
    }

    static void decode(ByteBuffer bytes, long[] numbers, long[] bits) {
        for (int at = 0; at < numbers.length; at++) {
            numbers[at] = bytes.getLong();
            for (int nth = 0; nth < LONGS; nth++) bits[at * LONGS + nth] = bytes.getLong();
        }
    }

    void warmUp() {
        long best = Long.MAX_VALUE;
        for (int batch = 0, slower = 0; batch < BATCHES_MAX && slower < SLOWER_BATCHES; batch++) {
            long begin = System.nanoTime();
            for (int nth = 0; nth < BATCH; nth++) recognize(nth % due.length);
            long time = System.nanoTime() - begin;
            slower = time < best ? 0 : slower + 1;
            best = Math.min(best, time);
        }
    }

    void run(int clients) throws InterruptedException {
        start = System.nanoTime();
        for (int client = 0; client < Math.min(clients, due.length); client++) next(client, clients);
        for (int request = 0; clients == 0 && request < due.length; request++) {
            for (long wait; (wait = start + due[request] - System.nanoTime()) > 0; ) LockSupport.parkNanos(wait);
            submit(request, System.nanoTime());
        }
        left.await();
    }

    // A client's request, after whose answer the next one follows.
    void next(int request, int clients) {
        long made = System.nanoTime();
        pool.execute(() -> {
            answer(request, made);
            if (request + clients < due.length) next(request + clients, clients);
        });
    }

    void submit(int request, long made) {
        pool.execute(() -> answer(request, made));
    }

    void answer(int request, long made) {
        recognize(request);
        long now = System.nanoTime();
        took[request] = now - made;
        done[request] = now - start;
        left.countDown();
    }

    void recognize(int request) {
        int[] best = new int[NEIGHBORS];
        long[] who = new long[NEIGHBORS];
        int count = 0;
        for (int sample = 0; sample < ids.length; sample++) {
            int distance = 0;
            for (int nth = 0; nth < LONGS; nth++) {
                distance += Long.bitCount(queries[request * LONGS + nth] ^ samples[sample * LONGS + nth]);
            }
            if (count == NEIGHBORS && !isNearer(distance, ids[sample], best[count - 1], who[count - 1])) continue;
            int place = count < NEIGHBORS ? count++ : count - 1;
            for (; place > 0 && isNearer(distance, ids[sample], best[place - 1], who[place - 1]); place--) {
                best[place] = best[place - 1];
                who[place] = who[place - 1];
            }
            best[place] = distance;
            who[place] = ids[sample];
        }
        distances[request] = best;
        nearest[request] = who;
    }

    // Of samples at the same distance the one with the lesser id is nearer.
    static boolean isNearer(int distance, long id, int than, long other) {
        return distance < than || distance == than && Long.compareUnsigned(id, other) < 0;
    }

    void write(String file) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(due.length * (16 + 12 * NEIGHBORS)).order(ByteOrder.LITTLE_ENDIAN);
        for (int request = 0; request < due.length; request++) {
            bytes.putLong(took[request]).putLong(done[request]);
            for (int nth = 0; nth < NEIGHBORS; nth++) {
                bytes.putInt(distances[request][nth]).putLong(nearest[request][nth]);
            }
        }
        Files.write(Path.of(file), bytes.array());
    }
}
