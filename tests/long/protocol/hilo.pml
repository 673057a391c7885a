/*
 * The protocol of a counter: what docs/explanation/protocol.md says in words.
 *
 * Each step is one change that the row's lock makes atomic, or one of a process's memory.
 * The processes are alike, and each step may come at any time after any other. A message
 * that returns a range stays under way: it may arrive late, twice, or never.
 *
 * Bounds, by -D: PROCESSES, SIZE (a range has 1 to SIZE numbers), LAST (the highest
 * number), MESSAGES (how many returns are under way at once; which is lost is free).
 *
 * What databases and rules there are, by -D:
 *   BOUND            a range is reserved inside the caller's transaction, as on SQLite;
 *                      numbers that a rollback burns are kept, or given up
 *   LENT             ranges may be lent to clients that return them without a ticket:
 *                      low <= last instead, and the mark that the newest range is lent
 *     NO_MARK          the same without the mark
 *   RESTORE          the row is set back once, to what it was at any time before;
 *     RAISE_MAX        then Max is raised to the highest number given,
 *     RESTART          and no process lived through it
 *   OWN              only: no process gives a number twice that it gave itself
 *
 * Faults, by -D, to see the model fail:
 *   RAVENDB_RETURN   a return is taken by RavenDB's rule: no lower bound, no ticket
 *   NO_TICKET        it is taken by the lower bound, low - 1 <= last, without a ticket
 *   KEEP             a range is kept when the transaction that reserved it rolls back
 *   FORGET           burnt numbers are forgotten
 *   UNSEEN           every burnt number is kept, whatever Max was
 *   OUTLIVE          the answer of a reservation that rolls back holds
 *   SHARE            a child of a fork goes on with the range of its parent
 *   TRUST            a range counts as reserved although its COMMIT failed
 *   RAISE_MAX_ONLY   RAISE_MAX leaves a counter alone whose Max is high enough
 */

#ifndef PROCESSES
#define PROCESSES 4
#endif
#ifndef SIZE
#define SIZE 2
#endif
#ifndef LAST
#define LAST 6
#endif
#ifndef MESSAGES
#define MESSAGES 1
#endif

#define NOBODY PROCESSES
#define name(process) ('A' + PROCESSES - 1 - process)   /* Spin tries the last first */
#define highest_of(x, y) (x > y -> x : y)
#define bit_of(number) (1 << number)

/* The row in the database. A ticket is a random mark: 0 is one that nobody has. */
typedef Row { byte max; byte floor; byte low; byte ticket; bit lent };

/* What a process holds: the numbers next to high, and the highest that it knows. */
typedef Memory {
    byte next; byte high; byte ticket; byte seen; bit lent
#ifdef OWN
    ; short own               /* as given, of this process alone */
#endif
#ifdef BOUND
    /* Bit n: a rollback undid the number n; and no reservation has told of it since. */
    ; byte undone; byte burnt
#endif
};

/* A return under way; high 0: none. */
typedef Message { byte high; byte last; byte ticket; bit lent };

Row row;
Memory memory[PROCESSES];
Message sent[MESSAGES];
short given;                  /* bit n: the number n was given */

#ifdef BOUND
byte writer = NOBODY;         /* whose transaction has the lock of the database */
Row before;                   /* the row, should it roll back */
Memory bound;                 /* the range that it reserved */
short tentative;              /* what it gave or kept, should it commit */
bit told;                     /* it has reserved, which tells of burnt numbers */
#endif

#ifdef RESTORE
Row saved;                    /* the backup */
bit restored, raised;
#endif

byte i, ticket, low, met, held;   /* scratch, 0 between the steps */

/* ---- what is told of a step: a trail of a fault prints it ---- */

#define tell_row() printf("   (Max %d, low %d)\n", row.max, row.low)

/* ---- tickets and messages that can no longer matter look all the same ---- */

#ifdef BOUND
#define is_kept_before(t) (writer != NOBODY && before.ticket == t)
#else
#define is_kept_before(t) false
#endif
#ifdef RESTORE
#define is_saved(t) (!restored && saved.ticket == t)
#else
#define is_saved(t) false
#endif
#define is_alive(t) (row.ticket == t || is_kept_before(t) || is_saved(t))

inline forget(range) { range.next = 0; range.high = 0; range.ticket = 0; range.lent = 0 }

inline forget_message(m) {
    sent[m].high = 0; sent[m].last = 0; sent[m].ticket = 0; sent[m].lent = 0
}

/* SYMMETRY: the processes are alike, so that one order of theirs stands for all. */

#ifdef SYMMETRY
#ifdef BOUND
#define is_writer(p) (writer == p)
#else
#define is_writer(p) 0
#endif
#ifdef OWN
#define own_of(p) memory[p].own
#else
#define own_of(p) 0
#endif
#ifdef BOUND
#define undone_of(p) (memory[p].undone * 256 + memory[p].burnt)
#else
#define undone_of(p) 0
#endif
#define is_sorted(p, q) (place_of(p) > place_of(q) || \
    (place_of(p) == place_of(q) && undone_of(p) >= undone_of(q)))
#define place_of(p) ((((((memory[p].high * 16 + memory[p].next) * 16 + \
    memory[p].seen) * 8 + memory[p].ticket) * 2 + memory[p].lent) * 2 + \
    is_writer(p)) * 256 + own_of(p))
#define swap(field) low = memory[i].field; memory[i].field = memory[i + 1].field; \
    memory[i + 1].field = low; low = 0

inline sort() {
    do
    :: i + 1 < PROCESSES ->
        if
        :: is_sorted(i, (i + 1)) -> i++
        :: else ->
            swap(high); swap(next); swap(seen); swap(ticket); swap(lent);
#ifdef OWN
            swap(own);
#endif
#ifdef BOUND
            swap(undone); swap(burnt);
            if
            :: writer == i -> writer = i + 1
            :: writer == i + 1 -> writer = i
            :: else
            fi;
#endif
            if :: i -> i-- :: else fi
        fi
    :: else -> break
    od;
    i = 0
}
#else
inline sort() { skip }
#endif

/* ---- so can burnt numbers, which nobody can give or keep any more ---- */

#ifdef BOUND
#define bits_over(number) ~(bit_of((number + 1)) - 1)
#define bits_left(range) (range.high -> bits_over(range.next - 1) : 0)
#define bound_left(process) (writer == process -> bits_left(bound) : 0)
/* No return lowers Max below this. */
#define least_of(row) highest_of((row.low -> row.low - 1 : row.max), row.floor)
#define least_max (writer == NOBODY || least_of(row) < least_of(before) -> \
    least_of(row) : least_of(before))
#define tidy_low(row) \
    if \
    :: row.low && !(held & bit_of(row.ticket)) -> row.low = 0 \
    :: else \
    fi
#endif

inline tidy() {
    i = 0;
    do
    :: i < PROCESSES ->
        if
        :: memory[i].high && memory[i].next > memory[i].high -> forget(memory[i])
        :: else
        fi;
        if :: !is_alive(memory[i].ticket) -> memory[i].ticket = 0 :: else fi;
#ifdef BOUND
        held = held | bit_of(memory[i].ticket);
#endif
        i++
    :: else -> break
    od;
#ifdef BOUND
    if :: !is_alive(bound.ticket) -> bound.ticket = 0 :: else fi;
    held = held | bit_of(bound.ticket);
#endif
    i = 0;
    do
    :: i < MESSAGES ->
        if
        :: !is_alive(sent[i].ticket) -> sent[i].ticket = 0
        :: else
        fi;
#if !defined(RAVENDB_RETURN) && !defined(NO_TICKET)
        if :: !sent[i].lent && !sent[i].ticket -> forget_message(i) :: else fi;
#endif
#ifdef BOUND
        held = held | bit_of(sent[i].ticket);
#endif
        i++
    :: else -> break
    od;
    i = 0;
#ifdef BOUND
    tidy_low(row);
    tidy_low(before);
#ifdef RESTORE
    tidy_low(saved);
#endif
    held = 0;
    low = least_max;
    do
    :: i < PROCESSES ->
        memory[i].undone = memory[i].undone & (bits_left(memory[i]) | bound_left(i) |
            bits_over(highest_of(memory[i].seen, low)));
#ifndef UNSEEN
        memory[i].burnt = memory[i].burnt & bits_over(low);
#endif
        if :: memory[i].seen <= low -> memory[i].seen = 0 :: else fi;
        i++
    :: else -> break
    od;
    low = 0;
    i = 0;
#endif
    sort()
}

inline new_ticket() {         /* one that is nowhere in use: a random one */
    ticket = 1;
    do
    :: is_alive(ticket) -> ticket++
    :: else -> break
    od;
    row.ticket = ticket;
    ticket = 0
}

/* ---- the steps ---- */

inline copy(target, source) {
    target.max = source.max; target.floor = source.floor; target.low = source.low;
    target.ticket = source.ticket; target.lent = source.lent
}

#ifdef BOUND
#define row_is_free (writer == NOBODY)
#define row_is_mine (writer == me)
#define row_is_open (row_is_free || row_is_mine)
#else
#define row_is_free true
#define row_is_mine false
#define row_is_open true
#endif

#ifdef RESTORE
#define at_work (!restored || raised)
#else
#define at_work true
#endif

#define start_of_range() highest_of(highest_of(row.max, row.floor), memory[me].seen)
#define can_reserve(n) (at_work && start_of_range() + n <= LAST)

inline write_range(n, is_lent) {
    low = start_of_range() + 1;
    row.low = low;
    row.max = low + n - 1;
    row.lent = is_lent;
    new_ticket()
}

inline hold(range) {
    range.next = row.low;
    range.high = row.max;
    range.ticket = row.ticket;
    range.lent = row.lent
}

#ifdef BOUND
#define undone_by_me memory[me].undone
#else
#define undone_by_me 0
#endif

inline give(number) {
#ifdef OWN
#define was_given (memory[me].own & bit_of(number))
#else
#define was_given ((given | undone_by_me) & bit_of(number))
#endif
    if
    :: was_given -> printf("%c uses %d: AGAIN\n", name(me), number); assert(false)
    :: else -> printf("%c uses %d\n", name(me), number)
    fi;
    given = given | bit_of(number);
#ifdef OWN
    memory[me].own = memory[me].own | bit_of(number)
#endif
}

#ifdef BOUND
/* Objects that a rollback left with their numbers are saved again. Those keep them whose
   numbers this reservation skips, since it found Max under them. */
#ifdef UNSEEN
#define is_kept(number) (memory[me].burnt & bit_of(number))
#else
#define is_kept(number) \
    ((memory[me].burnt & bit_of(number)) && number > met && number < row.low)
#endif

inline keep(kept) {
    low = 1;
    do
    :: low <= LAST ->
        if
        :: is_kept(low) ->
            if
            :: (given | tentative) & bit_of(low) ->
                printf("%c keeps %d: AGAIN\n", name(me), low); assert(false)
            :: else -> printf("%c keeps %d\n", name(me), low)
            fi;
            kept = kept | bit_of(low)
        :: else
        fi;
        low++
    :: else -> break
    od;
    low = 0;
    met = 0
}
#endif

inline reserve(n, is_lent) {
#ifdef BOUND
    met = highest_of(row.max, row.floor);
#endif
    write_range(n, is_lent);
    hold(memory[me]);
    memory[me].seen = row.max;
    printf("%c reserves %d to %d", name(me), row.low, row.max);
    tell_row();
    low = 0;
#ifdef BOUND
    keep(given);
    memory[me].burnt = 0;
#endif
#ifdef RAVENDB_RETURN
    give(memory[me].next);    /* its clients reserve only when they need a number */
    memory[me].next++;
#endif
    tidy()
}

/* The answer to COMMIT was lost: the range may be reserved, and is burnt. */
inline reserve_unsure(n) {
#ifdef TRUST
    memory[me].next = start_of_range() + 1;
    memory[me].high = memory[me].next + n - 1;
    memory[me].ticket = 0;
    memory[me].seen = memory[me].high;
    printf("%c trusts in %d to %d, which was not committed", name(me), memory[me].next,
        memory[me].high);
#else
    write_range(n, 0);
    printf("%c does not know whether %d to %d was committed", name(me), row.low, row.max);
#endif
    tell_row();
    low = 0;
    tidy()
}

inline use() {
    give(memory[me].next);
    memory[me].next++;
    tidy()
}

/* ---- returns ---- */

#if defined(RAVENDB_RETURN)
#define is_accepted(m) (m.high == row.max && m.last <= row.max)
#elif defined(NO_TICKET)
#define is_accepted(m) (m.high == row.max && m.last <= m.high && m.last >= row.floor && \
    m.last >= row.low - 1)
#elif defined(NO_MARK)
#define is_accepted(m) (m.high == row.max && m.last <= m.high && m.last >= row.floor && \
    ((m.lent && m.last >= row.low) || \
     (!m.lent && m.ticket && m.ticket == row.ticket && m.last >= row.low - 1)))
#else
#define is_accepted(m) (m.high == row.max && m.last <= m.high && m.last >= row.floor && \
    ((m.lent && row.lent && m.last >= row.low) || \
     (!m.lent && m.ticket && m.ticket == row.ticket && m.last >= row.low - 1)))
#endif

inline arrive(m) {
    row.max = m.last;
    row.lent = 0;
    new_ticket()
}

/* The process lets go of the range first; then its message is under way. */
inline send(m) {
    printf("%c returns what is over %d, up to %d\n", name(me), memory[me].next - 1,
        memory[me].high);
    sent[m].high = memory[me].high;
    sent[m].last = memory[me].next - 1;
    sent[m].ticket = memory[me].ticket;
    sent[m].lent = memory[me].lent;
    forget(memory[me]);
    tidy()
}

/* As send(), and the answer arrives: Max fell, or the range stays a gap. */
inline send_and_hear(m) {
    printf("%c returns what is over %d, up to %d", name(me), memory[me].next - 1,
        memory[me].high);
    sent[m].high = memory[me].high;
    sent[m].last = memory[me].next - 1;
    sent[m].ticket = memory[me].ticket;
    sent[m].lent = memory[me].lent;
    forget(memory[me]);
    if
    :: is_accepted(sent[m]) ->
        arrive(sent[m]);
        if
        :: memory[me].seen == sent[m].high -> memory[me].seen = sent[m].last
        :: else
        fi;
        tell_row()
    :: else -> printf(": refused\n")
    fi;
    tidy()
}

inline deliver(m) {
    printf("The return of what is over %d, up to %d, arrives", sent[m].last, sent[m].high);
    arrive(sent[m]);
    tell_row();
    tidy()
}

#define holds_some (memory[me].high != 0)
#define can_arrive(m) (sent[m].high && row_is_free && is_accepted(sent[m]))

/* ---- the ends and beginnings of processes ---- */

inline crash() {
    printf("%c is killed; another process starts as %c\n", name(me), name(me));
    forget(memory[me]);
    memory[me].seen = 0;
#ifdef OWN
    memory[me].own = 0;
#endif
#ifdef BOUND
    memory[me].undone = 0; memory[me].burnt = 0;
#endif
    tidy()
}

#define child ((me + 1) % PROCESSES)
#define can_fork (PROCESSES > 1 && holds_some && !memory[child].high && \
    !memory[child].seen)

/* The child starts with an empty memory: as a process that was not there before. */
inline fork() {
    printf("%c forks %c\n", name(me), name(child));
#ifdef SHARE
    memory[child].next = memory[me].next;
    memory[child].high = memory[me].high;
    memory[child].ticket = memory[me].ticket;
    memory[child].seen = memory[me].seen
#endif
}

/* An id that no range gave is inserted, and the floor is raised to it. */
inline insert_explicit() {
    low = highest_of(row.max, row.floor) + 1;
    printf("A row with the explicit id %d is inserted", low);
    given = given | bit_of(low);
    row.floor = low;
    row.max = low;
    row.lent = 0;
    new_ticket();
    tell_row();
    low = 0;
    tidy()
}

#define can_insert_explicit ( row.max < LAST && row.floor < LAST)

/* ---- BOUND: a transaction of the caller's, which holds the database's only lock ---- */

#ifdef BOUND
inline begin() {
    writer = me;
    copy(before, row);
    printf("%c begins a transaction\n", name(me))
}

inline end_transaction() {
    writer = NOBODY;
    before.max = 0; before.floor = 0; before.low = 0; before.ticket = 0; before.lent = 0;
    tentative = 0;
    told = 0;
    forget(bound);
    bound.seen = 0
}

inline reserve_bound(n) {
    met = highest_of(row.max, row.floor);
    write_range(n, 0);
    hold(bound);
    printf("%c reserves %d to %d inside it", name(me), row.low, row.max);
    tell_row();
    if :: !told -> keep(tentative) :: else fi;
    told = 1;
    low = 0;
    met = 0;
    tidy()
}

/* What only a transaction that rolls back saw may come again, in another process. */
inline use_bound() {
    if
    :: (given | tentative | memory[me].undone) & bit_of(bound.next) ->
        printf("%c uses %d: AGAIN\n", name(me), bound.next); assert(false)
    :: else -> printf("%c uses %d inside it\n", name(me), bound.next)
    fi;
    tentative = tentative | bit_of(bound.next);
#ifndef FORGET
    memory[me].seen = highest_of(memory[me].seen, bound.next);
#endif
    bound.next++;
    if :: bound.next > bound.high -> bound.seen = bound.high; forget(bound) :: else fi
}

inline promote() {
    if
    :: bound.high ->
        memory[me].next = bound.next;
        memory[me].high = bound.high;
        memory[me].ticket = bound.ticket;
        memory[me].seen = highest_of(memory[me].seen, bound.high)
    :: else -> memory[me].seen = highest_of(memory[me].seen, bound.seen)
    fi
}

/* The rows of a transaction are gone, or the process believes so. */
inline burn() {
    memory[me].undone = memory[me].undone | tentative;
    memory[me].burnt = memory[me].burnt | tentative
}

inline commit() {
    given = given | tentative;
    promote();
    if :: told -> memory[me].burnt = 0 :: else fi;
    printf("%c commits\n", name(me));
    end_transaction();
    tidy()
}

/* The answer to COMMIT was lost: the rows may be there, the range is burnt. */
inline commit_unsure() {
    given = given | tentative;
    burn();
    printf("%c commits, and does not know it\n", name(me));
    end_transaction();
    tidy()
}

inline rollback() {
#ifdef KEEP
    promote();
#endif
#ifdef OUTLIVE
    given = given | (tentative & memory[me].burnt);
    tentative = tentative & ~memory[me].burnt;
    memory[me].burnt = 0;
#endif
    burn();
    copy(row, before);
    printf("%c rolls back", name(me));
    tell_row();
    end_transaction();
    tidy()
}
#endif

/* ---- RESTORE: the row falls back, the rows with the ids stay ---- */

#ifdef RESTORE
inline backup() {
    copy(saved, row);
    printf("A backup is made\n");
    tidy()
}

inline restore() {
    copy(row, saved);
    saved.max = 0; saved.floor = 0; saved.low = 0; saved.ticket = 0; saved.lent = 0;
    restored = 1;
#ifndef RAISE_MAX
    raised = 1;
#endif
#ifdef RESTART
    i = 0;
    do
    :: i < PROCESSES ->
        forget(memory[i]);
        memory[i].seen = 0;
#ifdef BOUND
        memory[i].undone = 0; memory[i].burnt = 0;
#endif
        i++
    :: else -> break
    od;
    i = 0;
#endif
    printf("The counter is restored");
    tell_row();
    tidy()
}

inline raise_max() {
    low = LAST;
    do
    :: low && !(given & bit_of(low)) -> low--
    :: else -> break
    od;
    if
#ifdef RAISE_MAX_ONLY
    :: low > row.max && low > row.floor ->
#else
    :: low > row.floor ->
#endif
        row.floor = low;
        row.max = highest_of(row.max, low);
        row.lent = 0;
        new_ticket()
    :: else
    fi;
    raised = 1;
    printf("hilo_raise_max finds %d", low);
    tell_row();
    low = 0;
    tidy()
}
#endif

/* ---- any process, any step, in any order ---- */

active [PROCESSES] proctype Process()
{
    byte me = _pid;

end:
    do
    :: d_step { row_is_free && can_reserve(1) -> reserve(1, 0) }
    :: d_step { row_is_free && can_reserve(SIZE) -> reserve(SIZE, 0) }
#if SIZE > 2
    :: d_step { row_is_free && can_reserve(2) -> reserve(2, 0) }
#endif
#ifdef LENT
    :: d_step { row_is_free && can_reserve(1) -> reserve(1, 1) }
    :: d_step { row_is_free && can_reserve(SIZE) -> reserve(SIZE, 1) }
#endif
    :: d_step { row_is_free && can_reserve(SIZE) -> reserve_unsure(SIZE) }
    :: d_step { holds_some && at_work -> use() }
    :: d_step { holds_some -> send(0) }
    :: d_step { holds_some && row_is_open -> send_and_hear(0) }
    :: d_step { can_arrive(0) -> deliver(0) }
#if MESSAGES > 1
    :: d_step { holds_some -> send(1) }
    :: d_step { holds_some && row_is_open -> send_and_hear(1) }
    :: d_step { can_arrive(1) -> deliver(1) }
#endif
    :: d_step { !row_is_mine && (memory[me].high || memory[me].seen) -> crash() }
    :: d_step { can_fork -> fork() }
#ifdef BOUND
    :: d_step { row_is_free -> begin() }
    :: d_step { row_is_mine && can_reserve(1) -> reserve_bound(1) }
    :: d_step { row_is_mine && can_reserve(SIZE) -> reserve_bound(SIZE) }
    :: d_step { row_is_mine && bound.high -> use_bound() }
    :: d_step { row_is_mine -> commit() }
    :: d_step { row_is_mine -> commit_unsure() }
    :: d_step { row_is_mine -> rollback() }
#endif
#ifdef RESTORE
    :: d_step { row_is_free && !restored -> backup() }
    :: d_step { row_is_free && !restored -> restore() }
#ifdef RAISE_MAX
    :: d_step { row_is_free && restored && !raised -> raise_max() }
#endif
#elif !defined(RAVENDB_RETURN)
    :: d_step { row_is_free && can_insert_explicit -> insert_explicit() }
#endif
    od
}
