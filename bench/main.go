package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
			os.Exit(1)
		}
		return
	}
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const usageText = `usage: go run ./bench <scenario> [flags]

  steady     open loop over 512 projects: -rate 40 -duration 5m
  burst      closed loop, as fast as it goes
  million    200,000 whole publishes of five writing requests each: four documents saved, then published
  hot        all publishes in one project
  conflicts  hot, and some transactions are refused as DynamoDB refuses those that meet
  wide       50 destinations a project
  hanging    50 destinations that hang beside one that is healthy
  flaky      every third try of a destination fails
  restart    burst, and a function process is killed every 10 s
  units      what one publish and its deliveries use, with 1, 3 and 50 destinations
  cost       docs/cost.md: what a publish, a delivery and a save use, and what that costs
  scale      docs/scale.md: what comes first on the way to 10,000 publishes a second
  rows       docs/benchmarks.md anew, of all results that are kept
  coldstart  init and first answer of each function under the runtime interface emulator
  all        everything but million, one after another

Each run adds a row to docs/benchmarks.md, failed ones too; -row=false adds none. -h after a scenario lists its flags.
`

// options are the flags of all scenarios; zero values leave a scenario as it is.
type options struct {
	rate      float64
	duration  time.Duration
	publishes int
	clients   int
	projects  int
	bare      time.Duration
	row       bool
	profile   string
	note      string
}

func command(args []string) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" {
		fmt.Print(usageText)
		return nil
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.Float64Var(&o.rate, "rate", 0, "whole publishes begun a second")
	flags.DurationVar(&o.duration, "duration", 0, "how long they are begun")
	flags.IntVar(&o.publishes, "publishes", 0, "how many whole publishes, where there is no duration")
	flags.IntVar(&o.clients, "clients", 0, "clients of a closed loop")
	flags.IntVar(&o.projects, "projects", 0, "projects that they publish in")
	flags.DurationVar(&o.bare, "bare", -1, "how long the bare client runs before and after, twice each")
	flags.BoolVar(&o.row, "row", true, "add a row to docs/benchmarks.md")
	flags.StringVar(&o.profile, "profile", "", "folder for profiles of api and deliver")
	flags.StringVar(&o.note, "note", "", "what else there is to say about the run, for its row")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch args[0] {
	case "coldstart":
		return coldStart(ctx, o)
	case "cost":
		return costs(ctx)
	case "scale":
		return scale()
	case "rows":
		root, err := moduleRoot()
		if err != nil {
			return err
		}
		return writePage(root)
	case "all":
		for _, name := range []string{"units", "burst", "steady", "wide", "hot", "conflicts", "hanging", "flaky", "restart"} {
			if err := one(ctx, name, o); err != nil {
				return err
			}
		}
		return coldStart(ctx, o)
	}
	return one(ctx, args[0], o)
}

// one runs a scenario and keeps its row, whatever came of it.
func one(ctx context.Context, name string, o options) error {
	makeScenario, ok := scenarios[name]
	if !ok {
		return fmt.Errorf("no scenario %q: see go run ./bench help", name)
	}
	failed := 0
	for _, s := range makeScenario(o) {
		before := loadAverage()
		r := perform(ctx, s)
		result := r.result(o, before)
		result.print(os.Stdout)
		if o.row && ctx.Err() == nil { // one that was broken off tells nothing
			if err := result.keep(r); err != nil {
				return err
			}
		}
		if len(r.faults) > 0 {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s: the books do not balance", name)
	}
	return nil
}
