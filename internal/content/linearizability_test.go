package content_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"colophon/internal/content"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
)

// published is the sequential model of a project: what releases there are, and
// what each key was used for.
type published struct {
	seq  int64
	keys map[string]use
}

type use struct {
	message string
	number  int64
}

type asked struct {
	key, message string
	count        bool // how many releases are there?
}

type answered struct {
	code     content.Code
	number   int64
	replayed bool
}

func (s published) next(r asked) published {
	after := published{s.seq + 1, maps.Clone(s.keys)}
	if r.key != "" {
		after.keys[r.key] = use{r.message, after.seq}
	}
	return after
}

// step gives the states that a project may be in after this answer; none: the
// answer is wrong.
func (s published) step(r asked, a answered) []published {
	before, used := s.keys[r.key]
	same := used && before.message == r.message
	switch {
	case r.count:
		if a.number == s.seq {
			return []published{s}
		}
	case a.code == content.CodeBusy:
		return []published{s}
	case a.code == content.CodeUnknownOutcome:
		if used {
			return []published{s}
		}
		return []published{s, s.next(r)}
	case a.code == content.CodeIdempotencyMismatch:
		if used && !same {
			return []published{s}
		}
	case a.replayed:
		if same && a.number == before.number {
			return []published{s}
		}
	case !used && a.number == s.seq+1:
		return []published{s.next(r)}
	}
	return nil
}

var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{published{keys: map[string]use{}}} },
	Step: func(state, input, output any) []any {
		var after []any
		for _, s := range state.(published).step(input.(asked), output.(answered)) {
			after = append(after, s)
		}
		return after
	},
	Equal: reflect.DeepEqual,
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v → %+v", input, output)
	},
}

// Editors publish side by side, with few keys and few messages, while requests
// and answers get lost, come late, conflict and are throttled.
func TestPublishIsLinearizable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const rounds, editors, publishes = 12, 5, 6
	var outcomes sync.Map
	for round := range rounds {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("round %d, seed %d", round, seed), func(t *testing.T) {
			project, err := w.CreateProject(t.Context(), "Handbook")
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			at := func() int64 { return time.Since(begun).Nanoseconds() }
			var mutex sync.Mutex
			var history []porcupine.Operation
			var wait sync.WaitGroup
			var tables []*storetest.Faulty
			for editor := range editors {
				random := rand.New(rand.NewPCG(seed, uint64(editor)))
				faulty := &storetest.Faulty{Engine: w.engine, Delay: func() time.Duration { return rand.N(20 * time.Millisecond) }}
				tables = append(tables, faulty)
				s := w.service(func(c *content.Config) {
					contents, err := store.NewContents(store.ContentsConfig{
						Engine: faulty, ContentTable: w.tables.Content, DeliveryTable: w.tables.Delivery,
					})
					if err != nil {
						t.Fatal(err)
					}
					c.Store, c.Clock, c.Jitter = contents, newPatient(), leisurely
				})
				wait.Go(func() {
					for range publishes {
						r := asked{message: fmt.Sprint("m", random.IntN(2))}
						if random.IntN(4) > 0 {
							r.key = fmt.Sprint("k", random.IntN(6))
						}
						forgotten := random.IntN(12) == 0 // this one's answers never come
						faulty.Choose = func(writes []store.Write) storetest.Fault {
							if !isPublish(writes) {
								return storetest.None
							}
							if forgotten {
								return storetest.RequestLost + storetest.Fault(random.IntN(3))
							}
							if random.IntN(2) == 0 {
								return storetest.None
							}
							return storetest.RequestLost + storetest.Fault(random.IntN(5))
						}
						called := at()
						p, err := s.Publish(t.Context(), project.ID, content.PublishRequest{Message: r.message, IdempotencyKey: r.key, Force: true})
						returned := at()
						a := answered{code: code(t, err), number: p.Number, replayed: p.Replayed}
						if a.code == content.CodeUnavailable {
							a.code = content.CodeBusy // to a caller the same: nothing was done
						}
						if a.code == content.CodeUnknownOutcome {
							returned = 1 << 62 // it may be carried out whenever it is
						}
						outcomes.Store(string(a.code)+fmt.Sprint(a.replayed), true)
						mutex.Lock()
						history = append(history, porcupine.Operation{ClientId: editor, Input: r, Call: called, Output: a, Return: returned})
						mutex.Unlock()
					}
				})
			}
			wait.Wait()
			for _, faulty := range tables {
				faulty.Settle()
			}
			called := at()
			p, err := w.Project(t.Context(), project.ID)
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, porcupine.Operation{
				ClientId: editors, Input: asked{count: true}, Call: called, Output: answered{number: p.Seq}, Return: at(),
			})
			switch result := porcupine.CheckOperationsTimeout(model.ToModel(), history, time.Minute); result {
			case porcupine.Ok:
			case porcupine.Unknown:
				t.Error("the checker did not come to an end")
			default:
				for _, o := range history {
					t.Logf("%d–%d %s", o.Call, o.Return, model.DescribeOperation(o.Input, o.Output))
				}
				t.Error("no order of these publishes explains their answers")
			}
		})
	}
	// A run that met no trouble shows nothing.
	for _, outcome := range []string{"false", "true", string(content.CodeIdempotencyMismatch) + "false", string(content.CodeUnknownOutcome) + "false"} {
		if _, ok := outcomes.Load(outcome); !ok {
			t.Errorf("no publish ended as %s", outcome)
		}
	}
}
