package sqltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

// childVariable says which role a process plays that a test has started.
const childVariable = "ONCEHTTP_TEST_CHILD"

// Main runs the tests of a package, several at once. In a process that Child has started, told by an environment variable, it runs one of the roles instead:
// the variable has the role and its arguments, a line for each.
func Main(m *testing.M, roles map[string]func(ctx context.Context, args []string) error) {
	role, rest, _ := strings.Cut(os.Getenv(childVariable), "\n")
	if role == "" {
		testrun.AtOnce(testrun.N(6, 3)) // they wait for the server
		code := m.Run()
		removeInstalled()
		os.Exit(code)
	}
	if err := roles[role](context.Background(), strings.Split(rest, "\n")); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Child returns a process of this test binary that plays a role. It is killed when ctx ends.
func Child(ctx context.Context, role string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+role+"\n"+strings.Join(args, "\n"))
	return cmd
}

// Together runs n processes of a role at the same time, and waits for all. It returns their errors, joined.
func Together(ctx context.Context, n int, role string, args ...string) error {
	results := make(chan error, n)
	for range n {
		go func() {
			out, err := Child(ctx, role, args...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			results <- err
		}()
	}
	var all error
	for range n {
		all = errors.Join(all, <-results)
	}
	return all
}
