#!/usr/bin/env bash
# Checks slot.pml with Spin: what the code does holds, and each mistake is found.
# Usage: docs/model/check.sh [quick|full] [NAME …]   NAMEs run those searches alone.
set -u
unset CDPATH
cd "$(dirname "$0")" || exit 2
model=$PWD/slot.pml
part=${1:-quick}; shift || true
only=" $* "
for tool in spin gcc; do
	command -v "$tool" >/dev/null || { echo "The model needs $tool, which is not here. On Debian: apt-get install spin gcc" >&2; exit 2; }
done
[ "$part" = quick ] || [ "$part" = full ] || { echo "Usage: check.sh [quick|full] [NAME …]" >&2; exit 2; }
work=$(mktemp -d)
passed=0 failed=0

# The rules, by what stands in the assertion that breaks.
rule() {
	case $1 in
	*'token==0'*) echo 'I1 one live lease' ;;
	*'terminal'* | *'!((st['*'>=2))'*) echo 'I2 nothing over an end' ;;
	*'arrived'*) echo 'I3 order' ;;
	*'newest>'*) echo 'a superseded one has a newer' ;;
	*'state==stop'*) echo 'a skip has a true reason' ;;
	*'state==0'*) echo 'paused and removed are not claimed' ;;
	*'state!=2'*) echo 'removed stays removed' ;;
	*'lease[0]=='*) echo 'what is being sent is left' ;;
	*'damaged=='*) echo 'what cannot be read is not decided about' ;;
	*'==number)'*) echo 'an attempt has its own number' ;;
	*'==1)'*) echo 'what has ended is not sent' ;;
	*) echo "$1" ;;
	esac
}

wanted() { [ "$only" = '  ' ] || [[ $only == *" $1 "* ]]; }

# search NAME WANT DEFINE…: all that can happen within the bounds. WANT: holds, or refuted.
search() {
	local name=$1 want=$2; shift 2
	wanted "$name" || return
	build "$name" -DSAFETY -DNOCLAIM -- "$@" || return
	./pan -m1000000 -w24 >out 2>&1
	local got=unclear broken=
	if [ -f slot.pml.trail ]; then
		got=refuted broken=$(rule "$(grep -m1 -o 'assertion violated.*\|invalid end state' out)")
	elif grep -q 'errors: 0' out && ! grep -q 'Search not completed\|out of memory\|max search depth' out; then
		got=holds
	fi
	report "$name" "$want" "$got" "$broken"
}

# live NAME WANT DEFINE…: under weak fairness, every delivery ends and the slot is free.
live() {
	local name=$1 want=$2; shift 2
	wanted "$name" || return
	build "$name" -DNFAIR=8 -- LIVE "$@" || return
	./pan -a -f -N ends -m1000000 -w24 >out 2>&1
	local got=unclear broken=
	if [ -f slot.pml.trail ]; then
		got=refuted broken='I5 every delivery ends'
		grep -q 'acceptance cycle' out || broken=$(rule "$(grep -m1 -o 'assertion violated.*' out)")
	elif grep -q 'errors: 0' out && ! grep -q 'Search not completed\|out of memory\|max search depth' out; then
		got=holds
	fi
	report "$name" "$want" "$got" "$broken"
}

build() {             # build NAME CFLAG… -- DEFINE…
	local name=$1 flags=(); shift
	while [ "$1" != -- ]; do flags+=("$1"); shift; done; shift
	mkdir "$work/$name" && cd "$work/$name" || exit 2
	began=$SECONDS
	printf '#define %s\n' "$@" >slot.pml
	[ $# -gt 0 ] || : >slot.pml
	cat "$model" >>slot.pml
	if spin -a slot.pml >spin.log 2>&1 && gcc -O1 -DCOLLAPSE -DMEMLIM="${MEMORY:-5500}" "${flags[@]}" -o pan pan.c 2>gcc.log; then
		return
	fi
	report "$name" built 'not built' "see $PWD"
	return 1
}

report() {
	local states memory
	states=$(grep -m1 -o '[0-9.e+]* states, stored' out 2>/dev/null | cut -d' ' -f1)
	memory=$(grep -o '[0-9.]*.total actual memory' out 2>/dev/null | grep -o '^[0-9]*')
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
		rm -rf "$PWD"
	else
		failed=$((failed + 1))
		printf 'NOT AS WANTED: %s; its story: cd %s && spin -t -p slot.pml\n' "$1" "$PWD"
	fi
	printf '%-34s wanted %-8s got %-8s %10s states %5s MiB %5s s  %s\n' "$1" "$2" "$3" "${states:--}" "${memory:--}" $((SECONDS - began)) "$4"
	cd "$work" || exit 2
}

# ---- what the code does ----
search two-releases                 holds
search three-releases               holds   'RELEASES 3' 'KILLS 0' 'TRIES 1'
search redelivery                   holds   'REDELIVERIES 1' 'TRIES 1' 'KILLS 0'
search pause                        holds   'PAUSES 1' 'KILLS 0'
search removal                      holds   'REMOVALS 1' 'KILLS 0'
search damaged-item                 holds   'DAMAGES 1' 'KILLS 0'
search our-own-faults               holds   'OURS 1' 'KILLS 0'
search expired-item                 holds   'EXPIRIES 1' 'KILLS 0'
search seen-in-part                 holds   'PARTS 1' 'KILLS 0'
search clock-off                    holds   'CLOCKS 2' 'KILLS 0'
live   every-delivery-ends          holds   'TRIES 1' 'LOSSES 1' 'HANDBACKS 0'
live   ends-behind-a-damaged        holds   'DAMAGES 1' 'TRIES 1' 'KILLS 0'

# ---- mistakes ----
search lease-per-delivery           refuted 'ROW_HELD (hold == n)' 'CLAIM_IF (!stale[me] && (token == 0 || release != k))'
search held-slot-is-claimed         refuted 'ROW_HELD false'
search claim-not-under-version      refuted 'CLAIM_IF (token == 0)'
search claim-refused-and-sent       refuted 'CLAIM_REFUSED lease[me] = k'
search claim-leaves-sent-through    refuted 'CLAIM_PASSES skip' 'EXPIRIES 1' 'KILLS 0'
search clock-not-asked              refuted 'MAY_SEND true' 'BYTES_IF true'
search clock-off-is-not-looked-at   refuted 'ROW_CLOCK false' 'CLOCKS 1' 'KILLS 0'
search clock-off-reclaims           refuted 'ROW_CLOCK (off && hold != OVER)' 'CLOCKS 1' 'KILLS 0'
search clock-off-claims             refuted 'ROW_CLOCK (off && hold == OVER)' 'CLOCKS 1' 'KILLS 0'
search bytes-after-the-lease        refuted 'BYTES_IF true'
search record-without-token         refuted 'RECORD_IF (st[k] == PENDING)'
search gone-brings-removed-back     refuted 'GONE_IF true' 'PAUSES 1' 'REMOVALS 1' 'KILLS 0'
search give-back-without-token      refuted 'GIVE_BACK_IF true'
search settle-not-under-version     refuted 'SETTLE_IF true'
search settle-without-allowance     refuted 'ROW_EXPIRED (hold != FREE)'
search settle-passes-forced         refuted 'SETTLE_PASSES (higher(m, through) > release)' 'REDELIVERIES 1' 'KILLS 0'
search newest-read-before-slot      refuted 'NEWEST_BEFORE_SLOT'
search ended-not-looked-at          refuted 'ROW_ENDED false'
search superseded-while-being-sent  refuted 'ROW_SUPERSEDED (forced == 0 && (through > n || m > n))'
search superseded-by-newest-alone   refuted 'ROW_SUPERSEDED (forced == 0 && m > n && mEnded)' 'EXPIRIES 1' 'KILLS 0'
search plain-skip-of-an-ended       refuted 'SKIP_PLAIN_IF(d) (st[d] != MISSING && over[d] == 0)'
search plain-skip-of-a-forced       refuted 'SKIP_PLAIN_IF(d) (st[d] == PENDING)' 'REDELIVERIES 1' 'KILLS 0'
search waiting-skip-of-a-forced     refuted 'SKIP_WAITING_IF(d) (st[d] == PENDING)' 'REDELIVERIES 1' 'KILLS 0'
search end-not-under-version        refuted 'END_CHECKED_IF (st[k] == PENDING)' 'PAUSES 1'
search end-keeps-version            refuted 'END_CHECKED_MOVES skip' 'RELEASES 3' 'REDELIVERIES 1' 'KILLS 0' 'TRIES 1'
search plain-skip-behind-a-damaged  refuted 'ROW_SUPERSEDED (forced == 0 && hold != n && (through > n || (m > n && mEnded)))' 'DAMAGES 1'
search being-sent-behind-a-damaged  refuted 'ROW_SUPERSEDED (forced == 0 && (through > n || (m > n && mEnded)))' 'DAMAGES 1'
search unreadable-is-not-looked-at refuted 'ROW_UNREADABLE false' 'DAMAGES 1' 'KILLS 0'
search paused-not-looked-at         refuted 'ROW_STOPPED (stop == REMOVED)' 'PAUSES 1'
search removed-not-looked-at        refuted 'ROW_STOPPED (stop == PAUSED)' 'REMOVALS 1'
search pause-keeps-version          refuted 'PAUSE_MOVES skip' 'PAUSES 1'
search resume-keeps-version         refuted 'RESUME_MOVES skip' 'PAUSES 1'
search removal-keeps-version        refuted 'REMOVE_MOVES skip' 'REMOVALS 1'
search removal-drops-holder         refuted 'REMOVE_MOVES token = 0; release = 0; move' 'REMOVALS 1'
search forced-over-anything         refuted 'ROW_PASSED false' 'RELEASES 3' 'REDELIVERIES 1' 'KILLS 0' 'TRIES 1'
search forced-over-newest-read      refuted 'ROW_PASSED (forced != 0 && m > forced)' 'RELEASES 3' 'REDELIVERIES 1' 'EXPIRIES 1' 'KILLS 0' 'TRIES 1'
search torn-read-is-decided         refuted 'TORN(d) false' 'PARTS 1' 'KILLS 0'
search torn-read-at-the-desk        refuted 'TORN_AT_DESK false' 'PARTS 1' 'REDELIVERIES 1' 'KILLS 0' 'TRIES 1' 'holdsOver(d) assert(st[d] == PENDING || sawOf(d) != 0)'
search try-now-of-a-cut-off        refuted 'ADVANCE_HELD(d) (token != 0 && release == d && !expired)' 'PARTS 1' 'REDELIVERIES 1' 'KILLS 0' 'TRIES 1' 'holdsOver(d) assert(st[d] == PENDING || sawOf(d) != 0)'
search record-over-an-end           refuted 'RECORD_IF (mine)' 'TORN(d) false' 'holdsOver(d) skip' 'PARTS 1' 'KILLS 0'
search record-over-an-attempt       refuted 'ATTEMPT_IF true' 'TORN(d) false' 'holdsOver(d) skip' 'PARTS 1' 'KILLS 0'
live   no-sweeper                   refuted 'SWEEPS(d) false' 'TRIES 1' 'LOSSES 1' 'KILLS 0'
live   expired-holder-stays         refuted 'ROW_EXPIRED false' 'TRIES 1'
live   settle-keeps-holder          refuted 'SETTLE_FREES skip' 'TRIES 1'
live   stuck-behind-a-damaged      refuted 'ROW_BEHIND_DAMAGED false' 'DAMAGES 1' 'TRIES 1' 'KILLS 0'
live   forced-are-passed-over       refuted 'ROW_SUPERSEDED (through > n || (m > n && mEnded))' 'REDELIVERIES 1' 'TRIES 1' 'KILLS 0'

# ---- further out ----
if [ "$part" = full ]; then
	search torn-for-ever            holds   'TORN(d) false' 'holdsOver(d) skip' 'PARTS 1'
	search seen-in-part-redelivery  holds   'PARTS 1' 'REDELIVERIES 1' 'KILLS 0' 'TRIES 1' 'holdsOver(d) assert(st[d] == PENDING || sawOf(d) != 0)'
	search three-releases-redelivery holds  'RELEASES 3' 'REDELIVERIES 1' 'KILLS 0' 'TRIES 1'
	search three-releases-two-tries holds   'RELEASES 3' 'KILLS 0'
	search three-releases-killed    holds   'RELEASES 3' 'TRIES 1'
	search two-kills-two-tries      holds   'KILLS 2'
	search redelivery-killed        holds   'REDELIVERIES 1'
	search pause-and-removal        holds   'PAUSES 1' 'REMOVALS 1'
	search pause-and-redelivery     holds   'PAUSES 1' 'REDELIVERIES 1' 'KILLS 0'
	search expired-item-redelivery  holds   'EXPIRIES 1' 'REDELIVERIES 1' 'KILLS 0' 'TRIES 1'
	search damaged-item-redelivery  holds   'DAMAGES 1' 'REDELIVERIES 1' 'KILLS 0' 'TRIES 1'
	search three-workers            holds   'WORKERS 3' 'KILLS 0' 'TRIES 1'
	live   ends-with-handbacks      holds   'TRIES 1' 'LOSSES 1'
	live   ends-with-two-tries      holds   'LOSSES 1' 'HANDBACKS 0'
	live   ends-with-redelivery     holds   'REDELIVERIES 1' 'TRIES 1' 'KILLS 0' 'HANDBACKS 0'
	live   ends-with-pause          holds   'PAUSES 1' 'TRIES 1' 'KILLS 0'
	live   ends-with-removal        holds   'REMOVALS 1' 'TRIES 1'
fi
echo "$passed as wanted, $failed not"
[ "$failed" -gt 0 ] || rm -rf "$work"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
