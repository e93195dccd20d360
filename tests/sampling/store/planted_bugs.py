"""Disks that make a store write in a wrong order, as a careless writer would. Power cuts must find each of them out."""

from __future__ import annotations

from pathlib import Path

from saddleback.files.disk import PARTIAL
from saddleback.sampling.store.manifest import MANIFEST
from sampling.store.crash_images import RecordingDisk


class NoShardSync(RecordingDisk):
    """Shards are never synced."""

    def fsync(self, file: int) -> None:
        if not self.files[file][0].endswith(".npy" + PARTIAL):
            super().fsync(file)


class NoLineSync(RecordingDisk):
    """Lines of the manifest are never synced."""

    def fsync(self, file: int) -> None:
        if self.files[file][0] != MANIFEST:
            super().fsync(file)


class NoFolderSync(RecordingDisk):
    """Names are never synced."""

    def sync_folder(self, path: Path) -> None:
        pass


class RenameFirst(RecordingDisk):
    """A file gets its name before its bytes are synced."""

    def fsync(self, file: int) -> None:
        if not self.files[file][0].endswith(PARTIAL):
            super().fsync(file)

    def rename(self, path: Path, new: Path) -> None:
        super().rename(path, new)
        self.step()
        self.log("fsync", self.record.names[new.name])


class LineFirst(RecordingDisk):
    """The manifest's line is on the disk before the shard has its name."""

    later: tuple[Path, Path] | None = None

    def rename(self, path: Path, new: Path) -> None:
        if new.suffix == ".npy":
            self.later = (path, new)
        else:
            super().rename(path, new)

    def sync_folder(self, path: Path) -> None:
        if self.later is None:
            super().sync_folder(path)

    def fsync(self, file: int) -> None:
        super().fsync(file)
        if self.later is not None and self.files[file][0] == MANIFEST:
            (path, new), self.later = self.later, None
            super().rename(path, new)
            super().sync_folder(new.parent)


class SyncTwice(RecordingDisk):
    """An fsync that failed is tried again, and believed."""

    def fsync(self, file: int) -> None:
        self.log("failed fsync", self.files[file][1])
        super().fsync(file)


class TrustingRecovery(RecordingDisk):
    """Recovery believes the lines that it reads and does not write them anew (all writes of whole manifests are skipped)."""

    skipped = -1

    def create(self, path: Path) -> int:
        if path.name != MANIFEST + PARTIAL or MANIFEST not in self.record.names:
            return super().create(path)
        self.skipped = super(RecordingDisk, self).create(path)
        return self.skipped

    def write(self, file: int, data: bytes) -> None:
        if file != self.skipped:
            super().write(file, data)

    def fsync(self, file: int) -> None:
        if file != self.skipped:
            super().fsync(file)

    def close(self, file: int) -> None:
        super().close(file)
        self.skipped = -1 if file == self.skipped else self.skipped

    def rename(self, path: Path, new: Path) -> None:
        if path.name in self.record.names:
            super().rename(path, new)
        else:
            path.unlink()


AT_ONCE = [NoShardSync, NoLineSync, NoFolderSync, RenameFirst, LineFirst, SyncTwice]
"""Bugs that show in a run that is never killed."""
