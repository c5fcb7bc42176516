// A horizontal bar that is filled as far as `share` says. (Browsers disagree about how a <meter> can be styled.)
export function Bar({ share, label, text }: { share: number; label: string; text: string }) {
  const filled = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));
  return (
    <span class="bar" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={1} aria-valuenow={filled} aria-valuetext={text}>
      <span style={{ width: `${filled * 100}%` }} />
    </span>
  );
}
