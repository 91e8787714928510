package container

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// shared is a service that others use, too. It only lists and removes.
type shared struct {
	API
	remote  bool
	listed  []Listed
	removed []string

	volumes        []Listed
	volumesRemoved []string
}

func (s *shared) Connect(context.Context, func() (string, error)) (API, error) { return s, nil }
func (*shared) Explain(_, _ string, err error) error                           { return err }
func (*shared) Close()                                                         {}
func (s *shared) Host() Host                                                   { return Host{Remote: s.remote} }

func (s *shared) List(context.Context, string, string) ([]Listed, error) { return s.listed, nil }

func (s *shared) ListVolumes(context.Context, string, string) ([]Listed, error) {
	return s.volumes, nil
}

func (s *shared) RemoveVolume(_ context.Context, id string) error {
	s.volumesRemoved = append(s.volumesRemoved, id)
	return nil
}

func (s *shared) Remove(_ context.Context, id string) error {
	s.removed = append(s.removed, id)
	return nil
}

// TestSweepOfOtherMachines sweeps a service that other machines use with the
// same user id: what cannot be told from theirs stays.
func TestSweepOfOtherMachines(t *testing.T) {
	self, err := local.Self()
	if err != nil {
		t.Fatal(err)
	}
	dead, elsewhere := self, self
	dead.Start++ // another process had this id
	elsewhere.Boot = "00000000-0000-0000-0000-000000000000"
	for _, test := range []struct {
		remote bool
		want   []string
	}{{false, []string{"dead", "elsewhere"}}, {true, []string{"dead"}}} {
		service := &shared{remote: test.remote, listed: []Listed{
			{ID: "dead", Labels: dead.Labels()}, {ID: "elsewhere", Labels: elsewhere.Labels()}, {ID: "ours", Labels: self.Labels()},
		}}
		service.volumes = append(service.listed, Listed{ID: "nobody's"})
		engine, err := New(Options{Name: "x", Driver: service, RuntimeDir: t.TempDir() + "/rt", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := engine.Sweep(t.Context()); err != nil || n != 2*len(test.want) || !slices.Equal(service.removed, test.want) || !slices.Equal(service.volumesRemoved, test.want) {
			t.Errorf("remote %v: removed %v and volumes %v, %v, want %v", test.remote, service.removed, service.volumesRemoved, err, test.want)
		}
	}
}
