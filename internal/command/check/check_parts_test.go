package check

import (
	"testing"
)

// A flag's name stands before what the suite finds wrong with its value.
func TestFlagOf(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{
		"URL": "URL", "Restart": "--restart-cmd", "IDPointer": "--id-pointer", "AllowHosts": "--allow-host", "MaxRequests": "--max-requests", "Run": "--run",
	} {
		if got := flagOf(option); got != want {
			t.Errorf("%s: %s, want %s", option, got, want)
		}
	}
}
