package run

import (
	"context"
	"log/slog"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// notices tells the logger of a client about what its settings leave unprotected, or assume. It is safe for concurrent use.
type notices struct {
	cfg         *Config
	accountBase string       // Config.Account, as part of an ID
	told        toldCoverage // for tellCoverage
	passed      toldPassing  // for tellPassing
}

// tellNew logs the facts about a new client that its program should know: assumptions about the API, and requests that are not protected any more.
func (n *notices) tellNew() {
	n.tellUndeclared()
	tellAssumed(n.cfg)
}

// tellAssumed tells the logger, once for each profile of a client, what is assumed of the API beyond the facts of its sources. A complete profile,
// and that of the draft, which is no API, need no such line.
func tellAssumed(c *Config) {
	if !c.logs(context.Background(), slog.LevelInfo) {
		return
	}
	_, profiles := c.profiles().all()
	said := map[string]bool{}
	for _, p := range profiles {
		assumed := p.Assumptions()
		if said[p.Name] || len(assumed) == 0 || !p.Named() || p.State() == profile.StateComplete {
			continue
		}
		said[p.Name] = true
		names := make([]string, len(assumed))
		for i, a := range assumed {
			names[i] = a.String()
		}
		c.Logger.LogAttrs(context.Background(), slog.LevelInfo, "oncehttp: a profile assumes what no source states (said once)",
			slog.String("profile", p.Name), slog.String("state", string(p.State())), slog.String("assumes", strings.Join(names, ", ")))
	}
}
