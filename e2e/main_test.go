//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	var err error
	if running, err = open(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	orders, err := os.MkdirTemp("", "colophon-orders-")
	if err == nil {
		err = running.obey(context.Background(), orders)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(orders)
	os.Exit(code)
}
