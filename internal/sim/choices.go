package sim

import "math/rand/v2"

// label names what is chosen.
type label uint8

// The choices. Zero is always the plainest answer: no fault, the shortest wait,
// the fewest things.
const (
	chooseSize        label = iota // how many destinations, releases, workers …
	chooseSwarm                    // which faults this run has
	choosePause                    // when people and publishers act
	chooseAction                   // what they do
	chooseLatency                  // how long a call, a message, a receiver takes
	chooseSkew                     // how wrong a sandbox's clock is
	chooseOrder                    // which of several equals comes first
	chooseReceiver                 // what a receiver answers
	chooseRetry                    // the Retry-After it sends
	chooseJitter                   // the protocol's own randomness
	firstFault                     // from here on: faults, each with a rate
	faultThrottle                  // a call is refused for load
	faultConflict                  // a write meets another transaction that is not there to see
	faultUnknown                   // a write times out: done, not done, or done later
	faultTwice                     // the SDK asks twice
	faultSplit                     // a transaction's items become visible one after another
	faultTorn                      // a query reads one item after another
	faultShort                     // a query answers with a page that ends early
	faultSlowCall                  // a call takes seconds
	faultOutage                    // a table refuses most calls for a while
	faultCrash                     // a process is killed
	faultFreeze                    // a sandbox stands still
	faultClock                     // a clock jumps within its bound
	faultHost                      // a host's clock is off by seconds or minutes, or no longer
	faultStreamLoss                // a stream record is lost
	faultQueueLoss                 // a message is lost
	faultQueueTwice                // a message is delivered twice
	faultQueueDelay                // a message comes minutes late
	faultQueueSend                 // a send is refused, in part or wholly, or its answer is lost
	faultAck                       // a deletion is lost
	faultSeal                      // a secret cannot be opened
	faultOurs                      // sending fails for a reason of our own
	faultPanic                     // a record's work panics
	faultPoison                    // an unreadable message
	faultIndexLag                  // the index is seconds behind
	faultExpire                    // a delivery that ended is expired
	faultDamage                    // an item is damaged, or of a newer build
	faultShortOfUnits              // a transaction is cancelled: the table is short of units for some of its items
	faultGiveBack                  // a lease that is given back meets another transaction
	labels
)

// rates say how often a fault happens, in 10,000 chances of it.
var rates = [labels]uint32{
	faultThrottle: 60, faultConflict: 60, faultUnknown: 60, faultTwice: 60, faultSplit: 400, faultTorn: 400, faultShort: 200,
	faultSlowCall: 100, faultOutage: 10, faultCrash: 60, faultFreeze: 40, faultClock: 100, faultHost: 300,
	faultStreamLoss: 300, faultQueueLoss: 200, faultQueueTwice: 300, faultQueueDelay: 100, faultQueueSend: 200,
	faultAck: 200, faultSeal: 100, faultOurs: 50, faultPanic: 30, faultPoison: 20, faultIndexLag: 300, faultExpire: 100,
	faultDamage: 50, faultShortOfUnits: 60, faultGiveBack: 3_000,
}

// role says on whose behalf something is chosen.
type role uint8

const (
	roleWorld  role = iota // queues, stream, receivers
	rolePeople             // publishers, operators, and the api that works for them
	roleWorker
	roleCourier // what puts messages on the queue: outbox-stream and the sweeper
	roles
)

// tapes are what was chosen, by label and role. Each has a tape of its own, so
// that changing one choice moves as few others as can be.
type tapes [int(labels) * int(roles)][]uint32

// choices is the one source of all that is not determined: a generator that is
// recorded, or a record that is played again.
type choices struct {
	random *rand.PCG
	role   role
	tape   tapes
	played [int(labels) * int(roles)]int // how much of a tape was used; what is beyond it is zero
	replay bool
	rate   [labels]uint32 // of this run
	calm   bool           // the faults have ended

	most int           // of what there is: a world is smaller with 2; 0: no bound
	only *[labels]bool // the faults that there are; nil: all
}

func newChoices(seed uint64) *choices {
	return &choices{random: rand.NewPCG(seed, 0x636f6c6f70686f6e)}
}

// again plays a tape.
func again(tape tapes) *choices { return &choices{tape: tape, replay: true} }

// below chooses from 0 to n-1.
func (c *choices) below(l label, n int) int {
	if n <= 1 {
		return 0
	}
	if !c.replay {
		if l == chooseSize && c.most > 0 {
			n = min(n, c.most)
		}
		v := uint32(c.random.Uint64() % uint64(n))
		c.record(l, v)
		return int(v)
	}
	t := int(l)*int(roles) + int(c.role)
	at := c.played[t]
	c.played[t]++
	if at >= len(c.tape[t]) {
		return 0
	}
	return min(int(c.tape[t][at]), n-1)
}

func (c *choices) record(l label, v uint32) {
	t := int(l)*int(roles) + int(c.role)
	c.tape[t] = append(c.tape[t], v)
}

// happens says whether a fault happens here.
func (c *choices) happens(l label) bool {
	rate := c.rate[l]
	if rate == 0 || c.calm {
		return false
	}
	if c.replay {
		return c.below(l, 2) == 1
	}
	v := uint32(0)
	if uint32(c.random.Uint64()%10_000) < rate {
		v = 1
	}
	c.record(l, v)
	return v == 1
}

// swarm gives each run its own mix of faults: a rare fault hides behind a
// frequent one, and is found where that one is off.
func (c *choices) swarm() {
	for l := firstFault + 1; l < labels; l++ {
		much := c.below(chooseSwarm, 4)
		switch {
		case much == 0 || c.only != nil && !c.only[l]:
		case much == 3:
			c.rate[l] = min(5*rates[l], 3_000)
		default:
			c.rate[l] = rates[l]
		}
	}
}
