package persisttest_test

import (
	"bytes"
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// mutantFactStands: writes over what stands.
func mutantFactStands() mutant {
	return mutant{fact: func(s *store, ctx context.Context, name string, old, value []byte) ([]byte, error) {
		if standing, err := s.Fact(ctx, name, nil, nil); err == nil && string(value) == "sealed" {
			old = standing
		}
		return s.Fact(ctx, name, old, value)
	}}
}

// mutantFactChanges: replaces what begins as it should.
func mutantFactChanges() mutant {
	return mutant{fact: func(s *store, ctx context.Context, name string, old, value []byte) ([]byte, error) {
		if standing, err := s.Fact(ctx, name, nil, nil); err == nil && len(old) > 0 && bytes.HasPrefix(standing, old) {
			old = standing
		}
		return s.Fact(ctx, name, old, value)
	}}
}

// mutantFactOnce: reads first and writes then.
func mutantFactOnce() mutant {
	return mutant{fact: func(s *store, ctx context.Context, name string, old, value []byte) ([]byte, error) {
		standing, err := s.Fact(ctx, name, nil, nil)
		if err != nil || value == nil || !bytes.Equal(standing, old) {
			return s.Fact(ctx, name, old, value)
		}
		time.Sleep(time.Millisecond)
		_, err = s.Fact(ctx, name, old, value)
		return value, err
	}}
}

// mutantFactBounds: cuts off what is long.
func mutantFactBounds() mutant {
	return mutant{fact: func(s *store, ctx context.Context, name string, old, value []byte) ([]byte, error) {
		return s.Fact(ctx, name, old, value[:min(len(value), persist.FactMax)])
	}}
}

// mutantFactReopen: forgets the changes of facts with each opening.
func mutantFactReopen() mutant {
	return mutant{fact: func(s *store, ctx context.Context, name string, old, value []byte) ([]byte, error) {
		if got, err := s.Fact(ctx, name, old, value); s.opened < 2 || name != "origins" {
			return got, err
		}
		return []byte("one"), nil
	}}
}
