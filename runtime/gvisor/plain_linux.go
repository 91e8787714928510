package gvisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/erofs/go-erofs"
)

// Of EROFS, see the kernel's Documentation/filesystems/erofs.rst. All numbers
// are little-endian.
const (
	blockSize         = 4096
	superBlocksOffset = 1024 + 36 // the number of blocks, in the superblock
	inodeSizeOffset   = 8
	inodeBlockOffset  = 16 // where a file's data begins, in blocks
	inlineLayout      = 2 << 1
	extendedInode     = 1
	compactInodeBytes = 32
	extendedBytes     = 64
)

// makePlain gives every small file a block of its own. The library keeps such
// files beside their inodes, where gVisor can read them, but not map them into
// memory: a program that does gets SIGBUS.
func makePlain(image *os.File) error {
	end, err := image.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tree, err := erofs.Open(image)
	if err != nil {
		return err
	}
	end = (end + blockSize - 1) / blockSize * blockSize
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		ranged, ok := info.(interface{ DataRange() []erofs.DataRange })
		if !ok || info.Size() == 0 {
			return nil
		}
		data := ranged.DataRange()
		if len(data) != 1 || data[0].Offset%blockSize == 0 { // it has blocks of its own
			return nil
		}
		if err := movePlain(image, data[0], end); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		end += blockSize
		return nil
	})
	if err != nil {
		return err
	}
	blocks := binary.LittleEndian.AppendUint32(nil, uint32(end/blockSize)) //nolint:gosec // an image is bounded
	_, err = image.WriteAt(blocks, superBlocksOffset)
	return errors.Join(err, image.Truncate(end))
}

// movePlain moves the data that follows an inode to a block at the end.
func movePlain(image *os.File, data erofs.DataRange, end int64) error {
	for _, header := range []int64{extendedBytes, compactInodeBytes} {
		inode := make([]byte, header)
		if _, err := image.ReadAt(inode, data.Offset-header); err != nil {
			return err
		}
		format := binary.LittleEndian.Uint16(inode)
		size := int64(binary.LittleEndian.Uint32(inode[inodeSizeOffset:]))
		extended := uint16(0)
		if header == extendedBytes {
			extended = extendedInode
		}
		if format != inlineLayout|extended || size != data.Size {
			continue
		}
		block := make([]byte, blockSize)
		if _, err := image.ReadAt(block[:data.Size], data.Offset); err != nil {
			return err
		}
		if _, err := image.WriteAt(block, end); err != nil {
			return err
		}
		binary.LittleEndian.PutUint16(inode, extended)
		binary.LittleEndian.PutUint32(inode[inodeBlockOffset:], uint32(end/blockSize)) //nolint:gosec // an image is bounded
		_, err := image.WriteAt(inode, data.Offset-header)
		return err
	}
	return errors.New("its inode is not where its data is")
}
