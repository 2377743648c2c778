package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The test binary is the children's program too.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// short is a scenario at a size for tests.
func short(t *testing.T, name string, change func(*scenario)) *run {
	t.Helper()
	o := options{publishes: 40, projects: 16, clients: 4, bare: 200 * time.Millisecond}
	s := scenarios[name](o)[0]
	change(&s)
	r := perform(t.Context(), s)
	for _, fault := range r.faults {
		t.Errorf("%s: %s", name, fault)
	}
	return r
}

func TestAShortBurstBalancesAndMeasures(t *testing.T) {
	t.Parallel()
	r := short(t, "burst", func(s *scenario) { s.world.Units = true })
	if r.balance.Releases != 40 || r.balance.Delivered != 40 || r.balance.Requests != 40 {
		t.Errorf("the books say %+v", r.balance)
	}
	for _, name := range []string{
		"publishes per second", "publish p99", "publish to receipt p99", "own processor time per publish", "rate ÷ bare rate, same calls",
		"allocations of api", "api TransactWriteItems write units", "deliver Query read units", "log of deliver",
	} {
		if r.value(name) <= 0 {
			t.Errorf("%s was not measured: %v", name, r.figures)
		}
	}
	if n := r.value("table calls of the bare client"); n != 7 {
		t.Errorf("the bare client makes %v calls: the token, the project, the drafts and the transaction; the reading, the claim and the record", n)
	}
}

func TestAKilledFunctionLosesNothing(t *testing.T) {
	t.Parallel()
	r := short(t, "restart", func(s *scenario) {
		s.plan.Publishes, s.plan.Duration = 0, 3*time.Second
		s.during = killer(time.Second, "outbox-stream", "api")
	})
	if len(r.kills) == 0 {
		t.Error("nothing was killed")
	}
}

func TestTransactionsThatMeetAreMadeUpFor(t *testing.T) {
	t.Parallel()
	r := short(t, "conflicts", func(s *scenario) { s.world.Conflicts = 0.5 })
	if r.value("conflicts injected") == 0 {
		t.Error("no transaction was refused")
	}
}

func TestARunIsKeptWithItsFaults(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.MkdirAll(root+"/"+folderName, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/"+pageName, []byte("# Page\n\n"+rowsMark+"\n\nwhat stood here before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]string{
		"20260101-000000-burst": `{"Scenario":"burst","Balanced":true,"Figures":[{"Name":"publish p99","Value":4,"Unit":"ms","Goal":"≤ 5","Met":true}]}`,
		"20260102-000000-burst": `{"Scenario":"burst","Faults":["one is lost"],"Figures":[{"Name":"publish p99","Value":7.5,"Unit":"ms","Goal":"≤ 5"},{"Name":"hidden","Value":1}]}`,
	} {
		if err := os.WriteFile(root+"/"+folderName+"/"+name+".json", []byte(r), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writePage(root); err != nil {
		t.Fatal(err)
	}
	read, err := os.ReadFile(root + "/" + pageName)
	if err != nil {
		t.Fatal(err)
	}
	page := string(read)
	for _, part := range []string{"# Page", "**FAILED**: one is lost", "| publish p99 | 7.50 ms | ≤ 5, **missed** |", "publish p99 4 ms", "| balance |"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %q:\n%s", part, page)
		}
	}
	if strings.Contains(page, "hidden") || strings.Contains(page, "what stood") || strings.Index(page, "FAILED") > strings.Index(page, "| balance |") {
		t.Errorf("the page is\n%s", page)
	}
}
