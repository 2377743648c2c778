/* The slot of one destination, over the steps of the code, for Spin.
 *
 * README.md beside this file names the function behind each step, row and
 * condition, what is assumed and what is left out. In short: one destination,
 * releases 1..RELEASES, WORKERS workers that are slow at every step, are killed,
 * and whose leases run out whenever Time likes; people who pause, resume, remove
 * and redeliver; a receiver that notes what arrives.
 *
 * One write to the table is one atomic block, and so is a transaction; a read of
 * several items is not. A slot's version is a number in the table. Here each
 * reader has a bit that every write to the slot sets: the version is not the one
 * that it read any more.
 *
 * Any release may ring at any moment, however often: that is all that a queue, a
 * stream and a sweeper, or a fault of any of them, can do to safety. With LIVE
 * there are messages, which are lost, and a sweeper, and every delivery must end.
 */

/* Bounds; check sets them. */
#ifndef RELEASES
#define RELEASES     2
#endif
#ifndef WORKERS
#define WORKERS      2
#endif
#ifndef TRIES
#define TRIES        2
#endif
#ifndef KILLS
#define KILLS        1       /* of workers that hold the slot */
#endif
#ifndef PAUSES
#define PAUSES       0       /* by a person, or by an answer of 410 */
#endif
#ifndef REMOVALS
#define REMOVALS     0
#endif
#ifndef REDELIVERIES
#define REDELIVERIES 0       /* and try-nows */
#endif
#ifndef OURS
#define OURS         0       /* deliveries that our own faults end after a day */
#endif
#ifndef DAMAGES
#define DAMAGES      0       /* deliveries whose items cannot be read */
#endif
#ifndef EXPIRIES
#define EXPIRIES     0       /* ended deliveries whose items leave the table */
#endif
#ifndef PARTS
#define PARTS        0       /* transactions that are seen in part */
#endif
#ifndef CLOCKS
#define CLOCKS       0       /* workers that take a message up while their clock is off */
#endif
#ifndef LOSSES
#define LOSSES       0       /* LIVE: of messages */
#endif
#ifndef HANDBACKS
#define HANDBACKS    1       /* LIVE: of claims that were not sent */
#endif

/* Status. queued and retrying are one: nothing depends on the difference. */
#define MISSING   0
#define PENDING   1
#define DELIVERED 2
#define FAILED    3
#define SKIPPED   4
#define DAMAGED   5          /* failed: unreadable */
#define terminal(s) ((s) >= DELIVERED)

/* SlotState */
#define ACTIVE  0
#define PAUSED  1
#define REMOVED 2

/* what a reader makes of the holder, beside the release that it is there for */
#define FREE 0
#define OVER 9               /* its lease is over */

/* why EndChecked ends a delivery: PAUSED, REMOVED or one of these */
#define PASSED   3           /* superseded */
#define GIVEN_UP 4           /* our own faults lasted for a day */

/* ---- the SLOT item ---- */
byte state = ACTIVE;
byte token = 0;              /* holder: 1 + the worker's number; 0: none */
byte release = 0;            /* holder */
byte sentThrough = 0;
byte waiting = 0;
bit  stale[WORKERS];         /* the version is not the one that this worker read */

/* ---- the delivery items ---- */
byte st[RELEASES+1];         /* status */
byte tries[RELEASES+1];
byte over[RELEASES+1];       /* force; 0: not forced */

/* ---- leases as the wall clock tells: what it is for; 0: over ---- */
byte lease[WORKERS];

/* ---- what the checker knows ---- */
byte newest = 0;             /* the newest release that was published */
byte arrived = 0;            /* the newest release that the receiver got */
byte clocks = 0;
byte kills = 0, pauses = 0, removals = 0, redeliveries = 0, ours = 0, expiries = 0, parts = 0, losses = 0, handbacks = 0;

#define FIRST  3             /* the first worker's pid */
#define me     (_pid - FIRST)
#define mine   (token == me + 1)
#define higher(a, b) ((a) > (b) -> (a) : (b))
#define expired (lease[token-1] == 0)

#if WORKERS == 2
#define moved        stale[0] = 1; stale[1] = 1
#define noLease      (lease[0] == 0 && lease[1] == 0)
#define beingSent(d) (lease[0] == d || lease[1] == d)
#else
#define moved        stale[0] = 1; stale[1] = 1; stale[2] = 1
#define noLease      (lease[0] == 0 && lease[1] == 0 && lease[2] == 0)
#define beingSent(d) (lease[0] == d || lease[1] == d || lease[2] == d)
#endif

#if REDELIVERIES > 0
bit staleDesk = 1;
#define move moved; staleDesk = 1
#else
#define move moved
#endif

#if EXPIRIES == 0
#define shown newest         /* the newest delivery that the table shows */
#elif RELEASES == 2
#define shown (st[2] != MISSING -> 2 : (st[1] != MISSING -> 1 : 0))
#else
#define shown (st[3] != MISSING -> 3 : (st[2] != MISSING -> 2 : (st[1] != MISSING -> 1 : 0)))
#endif

#if DAMAGES > 0
byte damaged = 0;
#define unreadable(d) (damaged == d)
#define bear(d)       if :: damaged == 0 -> damaged = d :: true fi
#else
#define unreadable(d) false
#define bear(d)       skip
#endif

/* A transaction over slot and delivery that is seen in part: readers and writers
 * meet the slot as it was written, and the delivery as it was before. (The other
 * half first is no more than a reader that met the slot earlier.) */
#if PARTS > 0
byte halfway = 0;             /* the delivery whose change is not visible yet; it conflicts with every write */
byte was = 0, wasTries = 0, wasOver = 0, wasNumbered = 0;    /* as it is still read */
byte last = 0;               /* of the slot: the delivery that its last transaction wrote */
byte attempt = 0;            /* holder: the number that its attempt takes */
byte numbered[RELEASES+1];   /* the number of a delivery's last attempt */
byte saw[RELEASES+1];        /* what its person saw; 0: it was not forced */
bit  behind = 0;             /* the holder's delivery got a rev since its worker read it */
bit  sameRev = 0;            /* what is seen in part gave the delivery the rev that it had */
#define statusOf(d)   (halfway == d -> was : st[d])
#define overOf(d)     (halfway == d -> wasOver : over[d])
#define triesOf(d)    (halfway == d -> wasTries : tries[d])
#define numberedOf(d) (halfway == d -> wasNumbered : numbered[d])
#define visible(d)    (halfway != d)
#define sawOf(d)      saw[d]
#define keepSaw(d)    saw[d] = (d < m -> m : 0)
#define visibleAgain  halfway = 0; was = 0; wasTries = 0; wasOver = 0; wasNumbered = 0; sameRev = 0
#define freshRev      behind = 0
#define raisesRev(d)  behind = (behind || (token != 0 && release == d))
#define recordsRev(d) sameRev = (sameRev || (behind && halfway == d))
inline transaction(d)        /* begins one that writes slot and delivery d */
{
	last = d;
	if
	:: parts < PARTS && halfway == 0 ->
		parts++; halfway = d; was = st[d]; wasTries = tries[d]; wasOver = over[d]; wasNumbered = numbered[d]
	:: true
	fi
}
#ifndef TORN
#define TORN(d)       (halfway != 0 && halfway == d && lastRead == d && !sameRev) /* Reading.Torn: the delivery's rev is below last's */
#endif
#ifndef TORN_AT_DESK
#define TORN_AT_DESK  (halfway == shown && last == shown && !sameRev)
#endif
#ifndef ATTEMPT_IF
#define ATTEMPT_IF    (numbered[k] < number + 1)        /* the attempt is not written yet */
#endif
#define SETTLE_ATTEMPT_IF (numbered[release] < attempt)
#else
#define statusOf(d)    st[d]
#define overOf(d)      over[d]
#define visible(d)     true
#define sawOf(d)       over[d]
#define keepSaw(d)     skip
#define transaction(d) skip
#define freshRev       skip
#define raisesRev(d)   skip
#define recordsRev(d)  skip
#define TORN(d)        false
#define TORN_AT_DESK   false
#define ATTEMPT_IF     true
#define SETTLE_ATTEMPT_IF true
#endif

#ifdef LIVE
bit  msg[RELEASES+1];        /* a message is on a queue */
bit  due[RELEASES+1];        /* tryAt is not in the future */
bit  unsent[WORKERS];        /* under this lease nothing was sent yet */
#define rings(d)     msg[d]
#define ring(d)      if :: msg[d] = 1 :: losses < LOSSES -> losses++ fi
#define isDue(d)     due[d]
#define dueNow(d)    due[d] = 1
#define dueLater(d)  due[d] = 0
#define begins       unsent[me] = 1
#define began        unsent[me] = 0
#define mayHandBack  (handbacks < HANDBACKS)
#define handBack     handbacks++
#else
#define rings(d)     (newest >= d)
#define ring(d)      skip
#define isDue(d)     true
#define dueNow(d)    skip
#define dueLater(d)  skip
#define begins       skip
#define began        skip
#define mayHandBack  true
#define handBack     skip
#endif

/* ---- the conditions: Decide's rows, the store's conditions, and what moves the
 * version. check takes one after another away, and the model must break. ---- */

/* Decide: n rang, m is the newest; forced, through, hold and stop as read */
#ifndef ROW_CLOCK
#define ROW_CLOCK      (off)
#endif
#ifndef ROW_EXPIRED
#define ROW_EXPIRED    (hold == OVER)
#endif
#ifndef ROW_ENDED
#define ROW_ENDED      (nEnded)
#endif
#ifndef ROW_UNREADABLE
#define ROW_UNREADABLE (unreadable(n))
#endif
#ifndef ROW_SUPERSEDED
#define ROW_SUPERSEDED (forced == 0 && hold != n && (through > n || (m > n && mEnded && !mDamaged)))
#endif
#ifndef ROW_HELD
#define ROW_HELD       (hold != FREE)
#endif
#ifndef ROW_PASSED
#define ROW_PASSED     (forced != 0 && higher(m, through) > forced)
#endif
#ifndef ROW_BEHIND_DAMAGED
#define ROW_BEHIND_DAMAGED (forced == 0 && m > n && mEnded)
#endif
#ifndef ROW_STOPPED
#define ROW_STOPPED    (stop != ACTIVE)
#endif

/* internal/store */
#ifndef CLAIM_IF
#define CLAIM_IF       (!stale[me])
#endif
#ifndef CLAIM_REFUSED
#define CLAIM_REFUSED  goto idle
#endif
#ifndef CLAIM_PASSES
#define CLAIM_PASSES   sentThrough = higher(sentThrough, k)
#endif
#ifndef RECORD_IF
#define RECORD_IF      (mine && st[k] == PENDING && ATTEMPT_IF)
#endif
#ifndef GONE_IF
#define GONE_IF        (state == ACTIVE)
#endif
#ifndef GIVE_BACK_IF
#define GIVE_BACK_IF   (mine)
#endif
#ifndef SETTLE_IF
#define SETTLE_IF      (!stale[me])
#endif
#ifndef SETTLE_PASSES
#define SETTLE_PASSES  (over[release] == 0 && higher(m, through) > release)
#endif
#ifndef SETTLE_FREES
#define SETTLE_FREES   token = 0; release = 0
#endif
#ifndef SKIP_PLAIN_IF
#define SKIP_PLAIN_IF(d) (st[d] == PENDING && over[d] == 0)
#endif
#ifndef SKIP_WAITING_IF
#define SKIP_WAITING_IF(d) (st[d] == PENDING && over[d] == 0)
#endif
#ifndef END_CHECKED_IF
#define END_CHECKED_IF (!stale[me] && st[k] == PENDING)
#endif
#ifndef END_CHECKED_MOVES
#define END_CHECKED_MOVES move
#endif

/* the worker's clock, and the connection's */
#ifndef MAY_SEND
#define MAY_SEND       (off || lease[me] != 0)
#endif
#ifndef BYTES_IF
#define BYTES_IF       (off || lease[me] != 0)
#endif

/* internal/destination */
#ifndef PAUSE_MOVES
#define PAUSE_MOVES    move
#endif
#ifndef RESUME_MOVES
#define RESUME_MOVES   move
#endif
#ifndef REMOVE_MOVES
#define REMOVE_MOVES   move
#endif
#ifndef NEWEST_AT_DESK
#define NEWEST_AT_DESK higher(shown, sentThrough)
#endif
#ifndef FORCED_OVER
#define FORCED_OVER(d) (d < m -> m : 0)
#endif
#ifndef REQUEUE_MOVES
#define REQUEUE_MOVES  move
#endif
#ifndef ADVANCE_HELD
#define ADVANCE_HELD(d) (token != 0 && release == d)    /* past its lease too: its worker may come back */
#endif
#ifndef COMMIT_IF
#define COMMIT_IF      (m != 0 && !staleDesk)
#endif

/* internal/outbox; with LIVE */
#ifndef SWEEPS
#define SWEEPS(d)      (st[d] == PENDING && !msg[d])
#endif

/* ---- the rules ---- */

/* I1: one live lease */
#define holdsI1            assert(token == 0 && noLease)
/* I2: nothing is written over an end */
#define holdsI2(d)         assert(!terminal(st[d]))
/* I3: nothing arrives after a newer one, but a forced redelivery, and that only over what its person saw */
#define holdsI3(d)         assert(sawOf(d) != 0 || d >= arrived); assert(sawOf(d) == 0 || arrived <= sawOf(d))
/* I5: the newest is not superseded; a skip has a true reason */
#define holdsPassed(d)     assert(sawOf(d) != 0 || newest > d); assert(sawOf(d) == 0 || newest > sawOf(d))
#define holdsStopped(s)    assert(state == s)
/* what is paused or removed is not claimed; what was removed stays so */
#define holdsActive        assert(state == ACTIVE)
#define holdsRemoved       assert(state != REMOVED)
/* what cannot be read is neither sent nor decided about */
#define holdsReadable(d)   assert(!(unreadable(d)))
/* what is being sent is not ended by others */
#define holdsLeft(d)       assert(!beingSent(d))
/* what has ended is not sent */
#ifndef holdsOver
#define holdsOver(d)       assert(st[d] == PENDING)
#endif

/* An end takes the force away; tries say nothing any more. */
#define end(d, s) st[d] = s; over[d] = 0; tries[d] = 0

/* ---- the world ---- */

active proctype Publisher()  /* pid 0: content.Service.Publish */
{
	byte n = 1;
	do
	:: atomic { n <= RELEASES -> st[n] = PENDING; newest = n; dueNow(n); ring(n); bear(n); n++ }
	:: n > RELEASES -> break
	od
}

#ifdef LIVE                  /* time that runs out before a send counts no try: it does so a few times only */
#define lapse(w)  (lease[w] != 0 && (!unsent[w] || mayHandBack))
#else
#define lapse(w)  (lease[w] != 0)
#endif
#define expire(d) (expiries < EXPIRIES && terminal(st[d]) && noLease)

active proctype Time()       /* pid 1 */
{
end:	do
	:: atomic { lapse(0) -> lease[0] = 0 }
	:: atomic { lapse(1) -> lease[1] = 0 }
#if WORKERS == 3
	:: atomic { lapse(2) -> lease[2] = 0 }
#endif
#ifdef LIVE
	:: atomic { !due[1] -> due[1] = 1 }
	:: atomic { !due[2] -> due[2] = 1 }
#if RELEASES == 3
	:: atomic { !due[3] -> due[3] = 1 }
#endif
#endif
#if PARTS > 0
	:: atomic { halfway != 0 -> visibleAgain }
#endif
#if EXPIRIES > 0
	:: atomic { expire(1) -> expiries++; st[1] = MISSING }
	:: atomic { expire(2) -> expiries++; st[2] = MISSING }
#if RELEASES == 3
	:: atomic { expire(3) -> expiries++; st[3] = MISSING }
#endif
#endif
	od
}

active proctype Switcher()   /* pid 2: destination.Service: Pause, Resume, Remove */
{
end:	do
	:: atomic { state == ACTIVE && pauses < PAUSES -> pauses++; state = PAUSED; PAUSE_MOVES }
	:: atomic { state == PAUSED -> state = ACTIVE; RESUME_MOVES }
	:: atomic { state != REMOVED && removals < REMOVALS -> removals++; state = REMOVED; REMOVE_MOVES }
	od
}

/* ---- the worker: one answering of one ring ---- */

inline skipWaiting()
{
	if
	:: SKIP_WAITING_IF(passed) && visible(passed) ->
		holdsPassed(passed); holdsLeft(passed);
		end(passed, SKIPPED)
	:: else
	fi;
	passed = 0
}

active [WORKERS] proctype Worker()
{
	byte n;                  /* the release that rang */
	byte m;                  /* the newest, as read */
	byte k;                  /* what is claimed or ended */
	byte through;            /* sentThrough, as read */
	byte hold;               /* the holder, as read */
	byte stop;               /* state, as read; then why k is ended */
	byte forced;             /* n's force, as read */
	bit  nEnded, mEnded, mDamaged;
	byte passed;             /* waiting, as the claim found it */
	bit  heard;              /* the attempt arrived */
#if CLOCKS > 0
	bit  off;                /* its clock is so far off that every lease of others is over to it, and its own never is */
#define comesOff if :: clocks < CLOCKS -> clocks++; off = 1 :: off = 0 fi
#else
#define off      false
#define comesOff skip
#endif
#if PARTS > 0
	byte lastRead;
	byte number, tried;      /* numbered and tries, of n, then of k, as read */
	byte numberM, triedM;    /* of m */
#define forgetDecided m = 0; through = 0; hold = 0; stop = 0; forced = 0; nEnded = 0; mEnded = 0; mDamaged = 0; lastRead = 0; numberM = 0; triedM = 0
#define forget        forgetDecided; n = 0; k = 0; passed = 0; heard = 0; number = 0; tried = 0
#define readLast      lastRead = last
#define readAttemptsM numberM = numberedOf(m); triedM = triesOf(m)
#define readAttemptsN number = numberedOf(n); tried = triesOf(n)
#define attemptsOfM   number = numberM; tried = triedM
#else
#define forgetDecided m = 0; through = 0; hold = 0; stop = 0; forced = 0; nEnded = 0; mEnded = 0; mDamaged = 0
#define forget        forgetDecided; n = 0; k = 0; passed = 0; heard = 0
#define readLast      skip
#define readAttemptsM skip
#define readAttemptsN skip
#define attemptsOfM   skip
#endif

idle:	atomic { forget; stale[me] = 1; comesOff };
end:	if
	:: rings(1) -> n = 1
	:: rings(2) -> n = 2
#if RELEASES == 3
	:: rings(3) -> n = 3
#endif
	fi;

	/* READ: a query that meets the slot first and then the newest delivery; then n's own item. */
#define readSlot   stale[me] = 0; stop = state; through = sentThrough; readLast; \
	if :: token == 0 -> hold = FREE :: token != 0 && (expired || off) -> hold = OVER :: else -> hold = release fi
#define readNewest m = (shown >= n -> shown : 0); mEnded = terminal(statusOf(m)); mDamaged = (statusOf(m) == DAMAGED); readAttemptsM
#define readRang   nEnded = (statusOf(n) != PENDING); forced = overOf(n); readAttemptsN
read:
#ifdef NEWEST_BEFORE_SLOT
	atomic { readNewest; if :: m == n -> readRang :: else fi };
	atomic { readSlot;   if :: m == n -> goto decide :: else fi };
	atomic { readRang };
#else
	atomic { readSlot };
	atomic { readNewest;
		if
		:: TORN(m) -> goto read
		:: !(TORN(m)) && m == n -> readRang; goto decide     /* one item */
		:: else
		fi };
	atomic { readRang;
		if
		:: TORN(n) -> goto read
		:: else -> if :: m == 0 -> m = n :: else fi
		fi };
#endif

decide:	atomic {
		if
		:: ROW_CLOCK -> goto wait
		:: else
		fi;
		if
		:: ROW_EXPIRED -> goto settle
		:: else
		fi;
		if
		:: ROW_ENDED -> goto acknowledge
		:: else
		fi;
		if
		:: ROW_UNREADABLE -> k = n; goto endUnreadable
		:: else
		fi;
		if
		:: ROW_SUPERSEDED -> goto skipPlain
		:: else
		fi;
		if
		:: ROW_HELD -> goto wait
		:: else
		fi;
		if
		:: ROW_PASSED -> k = n; stop = PASSED; goto endChecked
		:: else
		fi;
		if
		:: ROW_BEHIND_DAMAGED -> k = n; stop = PASSED; goto endChecked
		:: else
		fi;
		if
		:: forced != 0 -> k = n
		:: else -> k = m; attemptsOfM
		fi;
		if
		:: unreadable(k) -> goto endUnreadable
		:: else
		fi;
		if
		:: ROW_STOPPED -> goto endChecked
		:: else
		fi;
		if
		:: ours < OURS -> ours++; stop = GIVEN_UP; goto endChecked
		:: true
		fi;
		if
		:: !isDue(k) -> goto park
		:: !isDue(k) -> goto wait
		:: else                                          /* slow queue, or no time: the same as a slow worker */
		fi;
		forgetDecided;
		if
		:: n == k -> n = 0                               /* it ends with k */
		:: else
		fi
	};

	/* CLAIM */
	atomic {
		if
		:: CLAIM_IF ->
			holdsI1; holdsActive; holdsReadable(k);
			token = me + 1; release = k; lease[me] = k; begins;
#if PARTS > 0
			attempt = number + 1;
#endif
			freshRev;
			CLAIM_PASSES;
			if
			:: waiting != 0 && waiting < k -> passed = waiting; waiting = 0
			:: waiting == k -> waiting = 0
			:: else
			fi;
			move
		:: else -> CLAIM_REFUSED
		fi
	};
	if
	/* killed; or the claim came after its sender had given it up, and back */
	:: atomic { kills < KILLS -> kills++; began; goto idle }
	/* its outcome stayed unknown, the secrets did not open, or less than 12 s of the lease were left */
	:: atomic { mayHandBack -> handBack; goto giveBack }
	:: true
	fi;
	if
	:: atomic { passed != 0 -> skipWaiting() }
	:: true                                              /* it runs beside the send, and is slower */
	fi;

	/* SEND: the clock is asked, then the bytes leave, and arrive. */
	if
	:: MAY_SEND
	:: atomic { !(MAY_SEND) -> handBack; goto giveBack }
	fi;
	if
	:: atomic { BYTES_IF ->
		holdsI3(k); holdsOver(k);
		arrived = higher(arrived, k); heard = 1 }
	:: true                                              /* it does not arrive */
	fi;
	began;
	if
	:: atomic { passed != 0 -> skipWaiting() }
	:: passed == 0
	fi;
	if
	/* killed; or the record could not be written while the lease lasted */
	:: atomic { kills < KILLS -> kills++; goto idle }
	:: true
	fi;

	/* RECORD */
	atomic { visible(k) ->
		if
		:: RECORD_IF ->
			holdsI2(k);
			transaction(k); recordsRev(k);              /* it writes the rev after the one that was read */
#if PARTS > 0
			assert(numbered[k] == number && tries[k] == tried);     /* the number is its own, and each try counts */
			numbered[k] = number + 1;
#endif
			token = 0; release = 0; lease[me] = 0; move;
			tries[k]++;
			if
			:: heard -> end(k, DELIVERED)
			:: true -> end(k, FAILED)                               /* refused, blocked */
			:: heard && pauses < PAUSES ->                          /* gone */
				end(k, FAILED); pauses++;
				if
				:: GONE_IF -> holdsRemoved; state = PAUSED
				:: else
				fi
			:: tries[k] >= TRIES -> end(k, FAILED)
			:: tries[k] < TRIES ->
				dueLater(k);
				if
				:: over[k] == 0 -> waiting = k
				:: else
				fi
			fi
		:: !(RECORD_IF) && mine ->                                      /* it has ended: the slot alone is given back */
			assert(PARTS > 0);
			token = 0; release = 0; lease[me] = 0; move; goto idle
		:: !(RECORD_IF) && !mine -> lease[me] = 0; goto idle            /* late: a note on its own attempt */
		fi
	};
	if
	:: n != 0 -> goto skipPlain                          /* the one that rang was passed over by k */
	:: n == 0 -> goto idle
	fi;

giveBack:
	atomic {
		if
		:: GIVE_BACK_IF -> token = 0; release = 0; move
		:: else
		fi;
		lease[me] = 0; began;
		goto idle
	};

settle:	atomic {
		if
		:: SETTLE_IF && token != 0 && visible(release) ->
			if
			:: st[release] == PENDING && SETTLE_ATTEMPT_IF ->
				transaction(release);
				tries[release]++;
#if PARTS > 0
				numbered[release]++;
#endif
				if
				:: SETTLE_PASSES -> holdsPassed(release); holdsLeft(release); end(release, SKIPPED)
				:: !(SETTLE_PASSES) && tries[release] >= TRIES -> holdsLeft(release); end(release, FAILED)
				:: else ->
					if :: dueNow(release) :: dueLater(release) fi;
					if :: over[release] == 0 -> waiting = release :: else fi
				fi
			:: else                                          /* it has ended: the slot alone is freed */
			fi;
			SETTLE_FREES;
			move
		:: else
		fi;
		goto idle
	};

skipPlain:
	atomic {
		if
		:: SKIP_PLAIN_IF(n) && visible(n) ->
			holdsI2(n); holdsPassed(n); holdsLeft(n); holdsReadable(n);
			end(n, SKIPPED)
		:: else
		fi;
		goto idle
	};

endChecked:
	atomic {
		if
		:: END_CHECKED_IF && visible(k) ->
			if
			:: stop == PASSED -> holdsPassed(k)
			:: stop == PAUSED || stop == REMOVED -> holdsStopped(stop)
			:: stop == GIVEN_UP
			fi;
			holdsLeft(k); holdsReadable(k);
			transaction(k);
			end(k, (stop == GIVEN_UP -> FAILED : SKIPPED));
			END_CHECKED_MOVES
		:: else
		fi;
		goto idle
	};

endUnreadable:
	atomic {
		if
		:: st[k] == PENDING && visible(k) -> holdsLeft(k); end(k, DAMAGED)
		:: else
		fi;
		goto idle
	};

acknowledge: park:
#ifdef LIVE
	msg[n] = 0;
#endif
wait:	goto idle
}

/* ---- a person who redelivers, or has a pending delivery tried now ---- */

#if REDELIVERIES > 0
inline requeue(d)            /* an older release is forced over the newest, which the person names */
{
	redeliveries++;
	transaction(d);
	st[d] = PENDING; tries[d] = 0; over[d] = FORCED_OVER(d); keepSaw(d);
	dueNow(d); ring(d);
	REQUEUE_MOVES; m = 0; staleDesk = 1
}

inline advance(d)            /* refused until its attempt is recorded or settled, and where it would be skipped */
{
	if
	:: !(ADVANCE_HELD(d)) && m <= higher(d, over[d]) ->
		redeliveries++;
		transaction(d); raisesRev(d);
		dueNow(d); ring(d);
		move
	:: else
	fi;
	m = 0; staleDesk = 1
}

#define sendable(d) (visible(d) && !(unreadable(d)))

/* The desk reads as the worker does. What it writes is under the slot's version
 * and the delivery as they were read, so nothing is lost by reading the slot at
 * the same moment as the newest, and the delivery at the commit. */
active proctype Desk()
{
	byte m;                  /* the newest, as read; 0: nothing was read */

end:	do
	:: atomic { m == 0 && redeliveries < REDELIVERIES && state == ACTIVE && shown != 0 && !(TORN_AT_DESK) -> staleDesk = 0; m = NEWEST_AT_DESK }
	:: atomic { COMMIT_IF && sendable(1) && terminal(st[1]) -> requeue(1) }
	:: atomic { COMMIT_IF && sendable(2) && terminal(st[2]) -> requeue(2) }
	:: atomic { COMMIT_IF && sendable(1) && st[1] == PENDING -> advance(1) }
	:: atomic { COMMIT_IF && sendable(2) && st[2] == PENDING -> advance(2) }
#if RELEASES == 3
	:: atomic { COMMIT_IF && sendable(3) && terminal(st[3]) -> requeue(3) }
	:: atomic { COMMIT_IF && sendable(3) && st[3] == PENDING -> advance(3) }
#endif
	:: atomic { m != 0 && staleDesk -> m = 0 }           /* refused: it reads again */
	od
}
#endif

/* ---- LIVE ---- */

#ifdef LIVE
active proctype Sweeper()    /* what is due is moved on in the index first, then rung for, or lost between */
{
	byte d;
end:	do
	:: atomic { SWEEPS(1) -> d = 1 }; atomic { ring(1); d = 0 }
	:: atomic { SWEEPS(2) -> d = 2 }; atomic { ring(2); d = 0 }
#if RELEASES == 3
	:: atomic { SWEEPS(3) -> d = 3 }; atomic { ring(3); d = 0 }
#endif
	od
}

active proctype Tick()       /* time goes on where nothing else does, so that a standstill is a run as well */
{
end:	do :: timeout od
}

/* I5: when the faults have ended, every delivery ends and the slot is free. */
#if RELEASES == 2
ltl ends { <>[] (newest == 2 && terminal(st[1]) && terminal(st[2]) && token == 0) }
#else
ltl ends { <>[] (newest == 3 && terminal(st[1]) && terminal(st[2]) && terminal(st[3]) && token == 0) }
#endif
#endif
