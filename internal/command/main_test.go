package command_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
)

func TestMain(m *testing.M) { commandtest.RunTests(m) }
