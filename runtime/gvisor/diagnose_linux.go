package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

var _ runtime.Diagnoser = (*Engine)(nil)

// Diagnose implements [runtime.Diagnoser]. All it makes on the host, a control
// group, is gone when it returns.
func (e *Engine) Diagnose(ctx context.Context, image string) []runtime.Finding {
	helper := e.diagnoseHelper()
	findings := []runtime.Finding{helper, diagnoseRights()}
	if helper.Level == runtime.LevelOK { // of what cannot run, nothing can be in force
		findings = append(findings, e.diagnoseLimits(ctx),
			runtime.Finding{Name: "seccomp", Level: runtime.LevelOK, Detail: "inside by gVisor, and of gVisor itself by Linux; both are attested at every start"})
	}
	return append(findings,
		runtime.Finding{Name: "transport", Level: runtime.LevelOK, Detail: string(e.opts.Transport)},
		e.diagnoseImage(ctx, image),
	)
}

func (e *Engine) diagnoseHelper() runtime.Finding {
	f := runtime.Finding{Name: "runsc", Level: runtime.LevelOK}
	path, err := e.runsc("look for runsc")
	if err != nil {
		f.Level, f.Detail, f.Fix = runtime.LevelFail, reason(err), runtime.HintOf(err)
		return f
	}
	f.Detail = fmt.Sprintf("%s %s, platform systrap", path, Version)
	return f
}

// diagnoseRights says as whom sandboxes run, and whether they can.
func diagnoseRights() runtime.Finding {
	f := runtime.Finding{Name: "user", Level: runtime.LevelOK, Detail: "root: gVisor's kernel runs as nobody in a user namespace"}
	if os.Geteuid() == 0 {
		return f
	}
	f.Detail = "rootless: gVisor's kernel runs as this user in a user namespace, without capabilities"
	for _, setting := range []struct{ file, off string }{
		{"/proc/sys/user/max_user_namespaces", "0"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"},
		{"/proc/sys/kernel/yama/ptrace_scope", "3"},
	} {
		data, err := os.ReadFile(setting.file)
		if err == nil && strings.TrimSpace(string(data)) == setting.off {
			name := strings.ReplaceAll(strings.TrimPrefix(setting.file, "/proc/sys/"), "/", ".")
			f.Level, f.Detail, f.Fix = runtime.LevelFail, name+" is "+setting.off, "as root: sysctl -w "+name+"="+map[string]string{"0": "1", "1": "0", "3": "1"}[setting.off]
			if strings.HasSuffix(name, "max_user_namespaces") {
				f.Fix = "as root: sysctl -w " + name + "=15000"
			}
			return f
		}
	}
	return f
}

// diagnoseLimits makes a control group, to see what would be in force in it.
func (e *Engine) diagnoseLimits(ctx context.Context) runtime.Finding {
	f := runtime.Finding{Name: "cgroup limits", Level: runtime.LevelOK}
	missing := runtime.LevelFail
	if e.opts.AllowUnlimited {
		missing = runtime.LevelWarn
	}
	limits, err := e.tryLimits(ctx)
	spec := runtime.Spec{}
	differences := runtime.AttestLimits(spec, limits)
	switch {
	case errors.Is(err, local.ErrNoCgroup):
		f.Level, f.Detail, f.Fix = missing, "not in force: "+err.Error(), noLimitsHint
	case err != nil:
		f.Level, f.Detail = runtime.LevelFail, err.Error()
	case len(differences) > 0:
		f.Level, f.Detail, f.Fix = missing, differences[0].String(), noLimitsHint
	default:
		f.Detail = "memory, swap, processes and CPU in force"
	}
	return f
}

func (e *Engine) tryLimits(ctx context.Context) (runtime.CgroupLimits, error) {
	home, err := e.ensureHome()
	if err != nil {
		return runtime.CgroupLimits{}, err
	}
	l := runtime.Limits{}.WithDefaults()
	group, err := home.NewOwnCgroup(ctx, "probe"+strconv.FormatInt(time.Now().UnixNano(), 36), runtime.CgroupLimits{
		MemoryBytes: l.MemoryBytes, PIDs: l.PIDs, MilliCPUs: l.MilliCPUs(),
	})
	if err != nil {
		return runtime.CgroupLimits{}, err
	}
	limits, err := group.Limits()
	return limits, errors.Join(err, group.Remove(ctx))
}

func (e *Engine) diagnoseImage(ctx context.Context, image string) runtime.Finding {
	f := runtime.Finding{Name: "image", Level: runtime.LevelOK}
	if image = e.image(image); image == "" {
		p, err := findPython(ctx, e.opts.Python)
		if err != nil {
			f.Level, f.Detail, f.Fix = runtime.LevelFail, reason(err), runtime.HintOf(err)
			return f
		}
		f.Detail = "the host's own " + p.String()
		return f
	}
	f.Detail = image
	if err := e.checkImage(image); err != nil {
		f.Level, f.Detail, f.Fix = runtime.LevelFail, reason(err), runtime.HintOf(err)
	}
	return f
}

// reason is what was wrong, without the engine's name and the operation.
func reason(err error) string {
	if e, ok := errors.AsType[*runtime.Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
