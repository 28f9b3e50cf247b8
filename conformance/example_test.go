package conformance_test

import (
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
)

// One case, and those that it rests on, against a server that executes every repeat.
func ExampleRun() {
	server := mockserver.New(mockserver.Config{Bug: "keys-ignored"})
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	report, err := conformance.Run(context.Background(), conformance.Options{
		URL: server.URL() + "/payments", Witness: server.URL() + "/_effects?ref={ref}#/count", Run: []string{"replay/effects-once"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range report.Cases {
		if c.Verdict == conformance.VerdictFail {
			fmt.Println(c.ID, c.Level, c.Verdict)
		}
	}
	fmt.Println("exit status", report.ExitStatus())
	// Output:
	// replay/effects-once safety fail
	// exit status 1
}
