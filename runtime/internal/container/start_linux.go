package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// start takes every step up to an attested sandbox. What a failed start leaves
// is for destroy. ctx is looked at between the steps, and while waiting for the
// program; requests are not cut short.
func (s *sandbox) start(ctx context.Context, spec runtime.Spec) error {
	api, err := s.engine.Connect(ctx)
	if err != nil {
		return err
	}
	if missing := api.Host().Missing; len(missing) > 0 && !spec.AllowUnlimited {
		return s.engine.Refuse(missing...)
	}
	placement, err := s.place(ctx, api.Host(), spec)
	if err != nil {
		return err
	}
	explain := s.engine.opts.Driver.Explain
	if err := s.create(ctx, api, placement); err != nil {
		return explain("create container", spec.Image, err)
	}
	if err := s.prepare(ctx, api); err != nil {
		return explain("start container", spec.Image, err)
	}
	if err := s.run(ctx, api); err != nil {
		return explain("start container", spec.Image, err)
	}
	if err := s.await(ctx, spec.ConnectTimeout); err != nil {
		return err
	}
	return s.attest(ctx, spec, api.Host())
}

// place makes the host's part of the sandbox.
func (s *sandbox) place(ctx context.Context, host Host, spec runtime.Spec) (Placement, error) {
	var err error
	if s.uid, err = s.engine.takeUID(host.FirstUID, host.LastUID); err != nil {
		return Placement{}, err
	}
	if s.dir, err = s.engine.newSandboxDir(ctx, s.id, spec); err != nil {
		return Placement{}, err
	}
	if s.socket, err = s.dir.Listen(path.Base(runtime.SocketPath)); err != nil {
		return Placement{}, err
	}
	rlimits, err := clampRlimits(spec.Limits, extraRlimits(host, spec.Limits), local.HardLimit)
	if err != nil {
		return Placement{}, err
	}
	labels := map[string]string{local.LabelSandbox: s.id}
	maps.Copy(labels, s.engine.self.Labels())
	return Placement{
		ID: s.id, Spec: spec, UID: s.uid, Labels: labels, Dir: s.dir, Rlimits: rlimits,
		Command: append(slices.Clip(spec.Command), "socket:"+runtime.SocketPath),
	}, nil
}

// minData is the least limit of a process's data that OCI runtimes, which set it
// on themselves before they run the program, can work with: runc needs 80 MiB.
const minData = 128 << 20

// extraRlimits bound the memory of each process where nothing bounds that of
// all.
func extraRlimits(host Host, l runtime.Limits) map[string]int64 {
	if len(host.Missing) == 0 {
		return nil
	}
	return map[string]int64{"data": max(l.MemoryBytes, minData)}
}

// clampRlimits never asks for more than hardLimit: raising a limit needs
// CAP_SYS_RESOURCE, which not even root has everywhere. None is left to the
// engine's default, for the same reason.
func clampRlimits(l runtime.Limits, extra map[string]int64, hardLimit func(string) (int64, error)) (map[string]int64, error) {
	rlimits := l.Rlimits()
	maps.Copy(rlimits, extra)
	for name, want := range rlimits {
		hard, err := hardLimit(name)
		if err != nil {
			return nil, err
		}
		if hard != runtime.Unlimited {
			rlimits[name] = min(want, hard)
		}
	}
	return rlimits, nil
}

// patient returns a context for a request that should not be cut short, for the
// service would go on with it behind our back. It outlives ctx by a grace, so
// that a service which hangs does not hang its caller.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(requestGrace, cancel) })
	return whole, func() {
		stop()
		cancel()
	}
}

func (s *sandbox) create(ctx context.Context, api API, p Placement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancel := patient(ctx)
	defer cancel()
	s.created = true
	return api.Create(whole, p)
}

// prepare has the container made up to the point where its program would run.
func (s *sandbox) prepare(ctx context.Context, api API) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancel := patient(ctx)
	defer cancel()
	info, err := api.Prepare(whole, s.id)
	if err != nil {
		return err
	}
	s.attach(ctx, api)
	if info.PID == 0 {
		return nil
	}
	return s.hold(ctx, info)
}

// attach begins to collect what the program prints. It is for diagnosis only,
// so it may fail.
func (s *sandbox) attach(ctx context.Context, api API) {
	s.drained = make(chan struct{})
	output, err := api.Attach(ctx, s.id, false)
	if err != nil {
		s.engine.opts.Logger.WarnContext(ctx, "cannot read the program's stderr", "sandbox_id", s.id, "error", err)
		close(s.drained)
		return
	}
	s.output = output
	go func() {
		defer close(s.drained)
		copyFrames(&s.tail, output)
	}()
}

// hold takes hold of the process that is, or will become, the program.
func (s *sandbox) hold(ctx context.Context, info Info) error {
	process, err := local.OpenProcess(info.PID)
	if err != nil {
		return s.engine.unreadable(err)
	}
	if s.cgroup, err = local.CgroupOf(info.PID); err != nil {
		return errors.Join(s.engine.unreadable(err), process.Close())
	}
	s.oomKills = s.cgroup.OOMKills()
	s.info, s.process = info, process
	s.exited = make(chan struct{})
	go s.watch(context.WithoutCancel(ctx))
	return nil
}

// run runs the program.
func (s *sandbox) run(ctx context.Context, api API) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancel := patient(ctx)
	defer cancel()
	if err := api.Start(whole, s.id); err != nil || s.process != nil {
		return err
	}
	info, err := api.Inspect(whole, s.id)
	if err == nil && info.PID != 0 {
		err = s.hold(ctx, info)
		if err == nil {
			return nil
		}
	}
	if err != nil && !gone(err) {
		return err
	}
	s.exited = make(chan struct{})
	s.exit.Code = s.exitCode(ctx)
	close(s.exited)
	return s.exitError()
}

// gone reports whether err says that there is no such container or process any more.
func gone(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// await waits until the program has connected twice.
func (s *sandbox) await(ctx context.Context, limit time.Duration) error {
	late := fmt.Errorf("program did not connect within %v", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-s.process.Done():
			stop(errStopped)
		case <-ctx.Done():
		}
	}()
	control, callback, err := s.socket.AcceptPair(ctx, s.allowed)
	if err != nil {
		if errors.Is(err, errStopped) {
			return s.exitError()
		}
		return s.engine.fail.New("wait for the program", s.withOutput(err), "")
	}
	s.control, s.callback = control, callback
	return s.socket.Close() // from now on there is no way in
}

// allowed admits the container's first process only. The user id is attested
// later, and with it that it is the one of this sandbox.
func (s *sandbox) allowed(peer local.Peer) error {
	if peer.PID != int64(s.process.PID) {
		return fmt.Errorf("connection of process %d, want %d", peer.PID, s.process.PID)
	}
	return nil
}

// attest compares what is in force with the spec.
func (s *sandbox) attest(ctx context.Context, spec runtime.Spec, host Host) error {
	facts, err := local.ReadFacts(s.process.PID)
	if !s.process.Alive() {
		return s.exitError()
	}
	if err != nil {
		return s.engine.unreadable(err)
	}
	if facts.Env == nil { // a rootless engine's, which /proc does not show us
		facts.Env = s.info.Env
	}
	want := host.Expectation
	want.Spec, want.UID, want.GID = spec, s.uid, s.uid
	want.Rlimits = extraRlimits(host, spec.Limits)
	differences := append(runtime.Attest(want, facts), s.info.Differences...)
	if len(differences) > 0 {
		return s.engine.Refuse(differences...)
	}
	if without := runtime.AttestLimits(spec, facts.Cgroup); len(without) > 0 { // it is allowed, or we would not be here
		s.engine.opts.Logger.WarnContext(ctx, "sandbox without all of its limits", "sandbox_id", s.id, "not_in_force", without)
	}
	return nil
}
