package redis

import (
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Fact implements [persist.Journal]. Facts are fields of the hash that says how the journal is laid out. Error: also persist.ErrGone.
func (j *Journal) Fact(ctx context.Context, name string, old, value []byte) (standing []byte, err error) {
	if err := persist.CheckFact(name, value); err != nil {
		return nil, err
	}
	if err := j.opened(); err != nil {
		return nil, err
	}
	args := []any{j.id, name}
	if value != nil {
		args = append(args, old, value)
	}
	ask := func(ctx context.Context, _ bool) error {
		word, rest, err := split(j.scripts.fact.Run(ctx, j.client, []string{j.place}, args...))
		if err != nil {
			return err
		}
		if word != "fact" || len(rest) != 1 {
			return fmt.Errorf("%w: key %s was emptied since the journal was made; restore its append-only file, or use another prefix", persist.ErrGone, j.place)
		}
		if text, _ := rest[0].(string); text != "" {
			standing = []byte(text)
		}
		return nil
	}
	if value == nil {
		err = j.read(ctx, func(ctx context.Context) error { return ask(ctx, false) })
	} else {
		err = j.settle(ctx, ask)
	}
	return standing, err
}
