// Package container is the life of a sandbox over the API of a container
// engine, as Podman and Docker share it: from the host's directory and the
// user id, through the container's making, the program's connections and the
// attestation, to the last trace removed. What differs between engines is
// behind [Driver] and [API].
package container
