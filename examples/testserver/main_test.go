package main

import (
	"os"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

// TestMain lets several tests run at once: they wait for the servers that they judge.
func TestMain(m *testing.M) {
	testrun.AtOnce(6)
	os.Exit(m.Run())
}
