package sim_test

import (
	"testing"

	"colophon/internal/sim"
	"colophon/internal/store/storetest"
)

// The simulated tables pass every suite that the real engine passes.
func TestTables(t *testing.T) {
	t.Parallel()
	fresh := func(*testing.T) storetest.Place {
		return storetest.Place{
			Engine: sim.NewTables("content", "delivery"), Content: "content", Delivery: "delivery",
		}
	}
	for name, suite := range map[string]func(*testing.T, func(*testing.T) storetest.Place){
		"Engine": storetest.Engine, "Contents": storetest.Contents, "Destinations": storetest.Destinations, "Sweep": storetest.Sweep,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(t, fresh)
		})
	}
}
