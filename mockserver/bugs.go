package mockserver

import "fmt"

// mutation is what one bug changes; the zero value changes nothing.
type mutation struct{}

func findBug(name string) (mutation, error) {
	if name == "" {
		return mutation{}, nil
	}
	return mutation{}, fmt.Errorf("mockserver: unknown bug %q", name)
}
