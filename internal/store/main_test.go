package store_test

import (
	"testing"

	"colophon/internal/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }
