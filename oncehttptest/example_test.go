package oncehttptest_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/oncehttptest"
)

// The server acts, its answer is lost, and the process dies while it waits. The next process ends the operation: there is
// one effect.
func Example() {
	test := func(t *testing.T) { // in a test file: func TestPayCrashed(t *testing.T)
		synctest.Test(t, func(t *testing.T) {
			kit := oncehttptest.New(t, oncehttptest.Config{})
			kit.Next(mockserver.Fault{Kind: mockserver.HangAfter})
			go func() { _ = pay(kit.Client(), kit.URL) }() // the application's own function
			synctest.Wait()                                // until it waits for the answer
			for res, err := range kit.Crash().Resume(t.Context()) {
				fmt.Println(res.Key, res.Outcome, err)
			}
			fmt.Println(pay(kit.Client(), kit.URL)) // answered from the journal
			fmt.Println(kit.Sends("order-7"), "sends,", kit.Effects("order-7"), "effect")
		})
	}
	runTest(test)
	// Output:
	// order-7 confirmed <nil>
	// <nil>
	// 2 sends, 1 effect
}

// runTest runs a test inside of an example, whose output it leaves alone.
func runTest(test func(*testing.T)) {
	for name, value := range map[string]string{"test.v": "false", "test.count": "1", "test.run": "", "test.skip": ""} {
		given := flag.Lookup(name).Value.String()
		_ = flag.Set(name, value)
		defer func() { _ = flag.Set(name, given) }()
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.RunTests(all, []testing.InternalTest{{Name: "Example", F: test}})
}
